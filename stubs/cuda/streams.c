/* Streams and events: what the general code (record.c here, objects_replay.c in lower/cuda/) cannot do. */
#include "shared/cuda/calls.h"
#include "stubs/cuda/objects.h"

#include "cuda.index.h"

/* ---- attributes ---- */

/* CU_LAUNCH_ATTRIBUTE_... that a stream may have: access policy window, synchronization policy,
 * priority, and memory synchronization domain with its map. */
static const int attributes[] = {1, 3, 8, 9, 10};

static int copy_attributes(void *to, void *from, unsigned set)
{
	char value[64];

	for (unsigned i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		const uint64_t words[CALL_WORDS] = {
			(uint64_t)to, attributes[i], (uint64_t)value};
		int r = real_cuStreamGetAttribute(from, attributes[i], value);

		if (!r)
			r = cuda_perform(set, words);
		/* A driver that does not know it, or a stream that cannot have another. */
		if (r && r != CUDA_ERROR_INVALID_VALUE && r != CUDA_ERROR_NOT_SUPPORTED)
			return r;
	}
	return 0;
}

int body_cuStreamCopyAttributes(void *to, void *from)
{
	return copy_attributes(to, from, INDEX_cuStreamSetAttribute);
}

int body_cuStreamCopyAttributes_ptsz(void *to, void *from)
{
	return copy_attributes(to, from, INDEX_cuStreamSetAttribute_ptsz);
}

/* ---- callbacks, which are told the stream ---- */

struct callback {
	void (*function)(void *stream, int status, void *data);
	void *stream, *data;
};

static void call_back(void *real, int status, void *data)
{
	struct callback c = *(struct callback *)data;

	block_free(data, sizeof(c));
	c.function(c.stream, status, c.data);
}

typedef int add_callback(void *, void *, void *, unsigned);

static int add_callback_to(
	void *stream, void *function, void *data, unsigned flags, add_callback *real)
{
	struct callback *c;
	int r;

	if (!function || !state_usable())
		return real(stream, function, data, flags);
	c = block_new(sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*c = (struct callback){.function = function, .stream = stream, .data = data};
	r = real(stream, crossing_callback_pointer((void *)call_back), c, flags);
	if (r)
		block_free(c, sizeof(*c));
	return r;
}

int body_cuStreamAddCallback(void *stream, void *function, void *data, unsigned flags)
{
	return add_callback_to(stream, function, data, flags, real_cuStreamAddCallback);
}

int body_cuStreamAddCallback_ptsz(void *stream, void *function, void *data, unsigned flags)
{
	return add_callback_to(stream, function, data, flags, real_cuStreamAddCallback_ptsz);
}

/* ---- times between events ---- */

/*
 * When @o was recorded, in milliseconds on the scale that goes through restarts as if they took
 * no time. An event that was recorded before the last restart was recorded again there, just
 * before the mark; an event that is younger than the mark has been recorded since.
 */
static int event_time(struct object *o, double *time)
{
	const struct object *context = object_find(CUDA_CONTEXT, o->context);
	float since = 0;
	int r;

	if (!context || !context->mark)
		return CUDA_ERROR_INVALID_HANDLE;
	r = real_cuEventElapsedTime(&since, context->mark, o);
	if (r)
		return r;
	*time = o->flags & CUDA_OBJECT_RESTORED && since <= 0 ? o->time : context->time + since;
	return 0;
}

static int is_restored(const void *event)
{
	return in_records_window((uintptr_t)event) &&
	       ((const struct object *)event)->flags & CUDA_OBJECT_RESTORED;
}

typedef int elapsed_time(float *, void *, void *);

static int event_elapsed_time(float *ms, void *start, void *end, elapsed_time *real)
{
	double from, to;
	int r = real(ms, start, end);

	if (r || (!is_restored(start) && !is_restored(end)))
		return r;
	r = event_time(start, &from);
	if (!r)
		r = event_time(end, &to);
	if (!r)
		*ms = to - from;
	return r;
}

int body_cuEventElapsedTime(float *ms, void *start, void *end)
{
	return event_elapsed_time(ms, start, end, real_cuEventElapsedTime);
}

int body_cuEventElapsedTime_v2(float *ms, void *start, void *end)
{
	return event_elapsed_time(ms, start, end, real_cuEventElapsedTime_v2);
}
