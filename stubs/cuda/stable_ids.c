/*
 * Numbers of contexts and streams, names of functions, kernels and errors: what the driver gives out is
 * of this process, or lies in its memory. The program still sees the first it was told.
 */
#include <string.h>

#include "stubs/cuda/objects.h"

/* ---- numbers ---- */

/* As the program is to see the driver's @number. */
static uint64_t seen_number(unsigned kind, uint64_t number)
{
	struct cuda_numbers *n = &CUDA_STATE->numbers[kind];
	uint64_t mask = state_lock();

	number += n->base;
	if (number >= n->next)
		n->next = number + 1;
	state_unlock(mask);
	return number;
}

typedef int get_number(void *, uint64_t *);

/* @known: where the number of what has @handle is kept, plus one; NULL: nowhere. */
static int number_of(
	void *handle, uint64_t *number, uint64_t *known, unsigned kind, get_number *real)
{
	int r;

	if (known && *known && number) {
		*number = *known - 1;
		return 0;
	}
	r = real(handle, number);
	if (r || !number || !state_usable())
		return r;
	*number = seen_number(kind, *number);
	if (known)
		*known = *number + 1;
	return 0;
}

int body_cuCtxGetId(void *context, uint64_t *number)
{
	void *whose = context ? context : state_usable() ? current_context() : NULL;
	struct object *o = whose ? object_find(CUDA_CONTEXT, whose) : NULL;

	return number_of(
		context, number, o ? &o->number : NULL, NUMBERS_CONTEXT, real_cuCtxGetId);
}

/* @none: what NULL stands for. */
static int stream_number(void *stream, void *none, uint64_t *number, get_number *real)
{
	void *which = stream ? stream : none;
	uint64_t *known = NULL;
	struct object *o;

	if (in_records_window((uintptr_t)which)) {
		o = which;
		known = is_dead(o->real) ? NULL : &o->number;
	} else if (which == STREAM_LEGACY && state_usable()) {
		o = object_find(CUDA_CONTEXT, current_context());
		known = o ? &o->stream_number : NULL;
	}
	return number_of(stream, number, known, NUMBERS_STREAM, real);
}

int body_cuStreamGetId(void *stream, uint64_t *number)
{
	return stream_number(stream, STREAM_LEGACY, number, real_cuStreamGetId);
}

int body_cuStreamGetId_ptsz(void *stream, uint64_t *number)
{
	return stream_number(stream, STREAM_PER_THREAD, number, real_cuStreamGetId_ptsz);
}

/* ---- names ---- */

/* @name of @o, in the arena from now on. */
static int keep_name(struct object *o, const char *name)
{
	uint64_t size = strlen(name) + 1, mask;
	char *copy = block_new(size);

	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, name, size);
	mask = state_lock();
	if (!o->name) {
		o->name = copy;
		o->name_size = size;
		copy = NULL;
	}
	state_unlock(mask);
	block_free(copy, size); /* another thread was faster */
	return 0;
}

typedef int get_name(const char **, void *);

static int name_of(const char **name, void *handle, get_name *real)
{
	struct object *o = in_records_window((uintptr_t)handle) ? handle : NULL;
	int r = real(name, handle);

	if (r || !o || !name)
		return r;
	if (!o->name)
		r = keep_name(o, *name);
	if (!r)
		*name = o->name;
	return r;
}

int body_cuFuncGetName(const char **name, void *function)
{
	return name_of(name, function, real_cuFuncGetName);
}

int body_cuKernelGetName(const char **name, void *kernel)
{
	return name_of(name, kernel, real_cuKernelGetName);
}

/* ---- texts of errors ---- */

static const char *find_text(int error, const char *text)
{
	uint64_t mask = state_lock();
	const struct cuda_text *t = CUDA_STATE->texts;

	while (t && (t->error != error || strcmp(t->text, text)))
		t = t->next;
	state_unlock(mask);
	return t ? t->text : NULL;
}

/* A copy in the arena, one for all who ask; @text itself if there is no memory for it. */
static const char *keep_text(int error, const char *text)
{
	const char *kept = find_text(error, text);
	uint64_t size = strlen(text) + 1, mask;
	struct cuda_text *t = kept ? NULL : block_new(sizeof(*t) + size);

	if (!t)
		return kept ? kept : text;
	t->error = error;
	memcpy(t->text, text, size);
	mask = state_lock();
	t->next = CUDA_STATE->texts;
	CUDA_STATE->texts = t;
	state_unlock(mask);
	return t->text;
}

int body_cuGetErrorString(int error, const char **text)
{
	int r = real_cuGetErrorString(error, text);

	if (!r && text && *text)
		*text = keep_text(error, *text);
	return r;
}

int body_cuGetErrorName(int error, const char **text)
{
	int r = real_cuGetErrorName(error, text);

	if (!r && text && *text)
		*text = keep_text(error, *text);
	return r;
}
