/*
 * Numbers of contexts and streams, names of functions, kernels and errors: what the driver gives out is
 * of this process, or lies in its memory. The program still sees the first it was told.
 */
#include <string.h>
#include <sys/mman.h>

#include "shared/raw.h"
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

/* ---- strings ---- */

/* Strings that the program has been given, for good: many functions and errors have the same. In memory of the
 * program's, as children of fork(2) have the address too, and no records. */
struct kept_string {
	struct kept_string *next;
	char text[];
};

struct string_chunk {
	uint64_t used;
	char bytes[(1 << 16) - sizeof(uint64_t)];
};

#define STRING_LISTS 256

static struct kept_string *kept_strings[STRING_LISTS];
static struct string_chunk *string_chunk;

/* Without locks: a child of fork(2) may begin in the middle of this. NULL: no memory. */
static void *string_room(uint64_t size)
{
	struct string_chunk *c = __atomic_load_n(&string_chunk, __ATOMIC_ACQUIRE);
	uint64_t at = c ? __atomic_fetch_add(&c->used, size, __ATOMIC_RELAXED) : 0;
	long r;

	if (c && at + size <= sizeof(c->bytes))
		return c->bytes + at;
	if (size > sizeof(c->bytes))
		return NULL;
	r = raw(SYS_mmap, 0, sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	if (raw_failed(r))
		return NULL;
	c = (struct string_chunk *)r;
	c->used = size;
	__atomic_store_n(&string_chunk, c, __ATOMIC_RELEASE);
	return c->bytes;
}

static struct kept_string **text_list(const char *text)
{
	uint32_t hash = 0;

	for (; *text; text++)
		hash = hash * 31 + (unsigned char)*text;
	return &kept_strings[hash % STRING_LISTS];
}

/* A copy of @text that stays; @text itself if there is no memory for it. */
static const char *kept_string(const char *text)
{
	struct kept_string **list = text_list(text),
			   *t = __atomic_load_n(list, __ATOMIC_ACQUIRE);
	uint64_t size = strlen(text) + 1;

	while (t && strcmp(t->text, text))
		t = t->next;
	if (t)
		return t->text;
	t = string_room((sizeof(*t) + size + 7) & ~7ul);
	if (!t)
		return text;
	memcpy(t->text, text, size);
	t->next = __atomic_load_n(list, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
		list, &t->next, t, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return t->text;
}

/* ---- names ---- */

typedef int get_name(const char **, void *);

static int name_of(const char **name, void *handle, get_name *real)
{
	struct object *o = in_records_window((uintptr_t)handle) ? handle : NULL;
	int r = real(name, handle);

	if (r || !o || !name)
		return r;
	if (!o->name)
		o->name = kept_string(*name);
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

/* ---- errors ---- */

int body_cuGetErrorString(int error, const char **text)
{
	int r = real_cuGetErrorString(error, text);

	if (!r && text && *text)
		*text = kept_string(*text);
	return r;
}

int body_cuGetErrorName(int error, const char **text)
{
	int r = real_cuGetErrorName(error, text);

	if (!r && text && *text)
		*text = kept_string(*text);
	return r;
}
