/*
 * What runtime libraries keep with a context. The driver keeps it; what is put there is
 * recorded as well, to be put there again. A destructor is the program's and called from the
 * lower half.
 */
#include "stubs/cuda/context_storage.h"

#include "stubs/cuda/objects.h"

static storage_put *real_storage_put;
static storage_delete *real_storage_delete;
storage_get *real_storage_get;

static struct object *find_stored(void *context, void *key)
{
	uint64_t mask = state_lock();
	struct object *o = CUDA_STATE->objects;

	while (o && (o->kind != CUDA_STORAGE || o->context != context ||
			    o->made->arguments[STORAGE_KEY] != (uint64_t)key))
		o = o->next;
	state_unlock(mask);
	return o;
}

STUB_HIDDEN int body_storage_put(void *context, void *key, void *value, void *destructor)
{
	uint64_t size = sizeof(struct cuda_call) + STORAGE_WORDS * sizeof(uint64_t);
	struct object *o;
	int r;

	if (!state_usable())
		return CUDA_ERROR_NOT_INITIALIZED;
	o = object_new(CUDA_STORAGE, 0);
	destructor = crossing_callback_pointer(destructor);
	if (o)
		o->made = block_new(size);
	if (!o || !o->made) {
		object_drop(o);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	o->context = context ? context : current_context();
	o->made->size = size;
	o->made->index = CUDA_NO_FUNCTION;
	o->made->arguments[STORAGE_KEY] = (uint64_t)key;
	o->made->arguments[STORAGE_VALUE] = (uint64_t)value;
	o->made->arguments[STORAGE_DESTRUCTOR] = (uint64_t)destructor;
	query_cache_invalidate();
	r = real_storage_put(context, key, value, destructor);
	query_cache_invalidate();
	if (r) {
		object_drop(o);
		return r;
	}
	object_kill(find_stored(o->context, key));
	object_live(o, NULL);
	return 0;
}

STUB_HIDDEN int body_storage_delete(void *context, void *key)
{
	void *whose = context ? context : current_context();
	int r;

	query_cache_invalidate();
	r = real_storage_delete(context, key);
	query_cache_invalidate();
	if (!r)
		object_kill(find_stored(whose, key));
	return r;
}

STUB_HIDDEN void *storage_stand_in(size_t i, void *function)
{
	switch (i) {
	case STORAGE_PUT:
		real_storage_put = (storage_put *)function;
		return (void *)guarded_storage_put;
	case STORAGE_DELETE:
		real_storage_delete = (storage_delete *)function;
		return (void *)guarded_storage_delete;
	case STORAGE_GET:
		real_storage_get = (storage_get *)function;
		return (void *)guarded_storage_get;
	}
	return function;
}
