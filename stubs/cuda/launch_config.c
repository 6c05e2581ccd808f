/* Launches whose configuration is a structure with handles in it. */
#include "shared/raw.h"
#include "stubs/cuda/objects.h"

#include "cuda.index.h"

struct lowered {
	struct launch_config config;
	struct launch_attribute *copies; /* in the arena, or NULL */
};

static int has_event(const struct launch_attribute *a)
{
	return a->id == PROGRAMMATIC_EVENT || a->id == LAUNCH_COMPLETION_EVENT;
}

static int lower_events(struct lowered *l)
{
	struct launch_config *c = &l->config;
	unsigned i = 0;

	while (i < c->attribute_count && !has_event(&c->attributes[i]))
		i++;
	if (i == c->attribute_count)
		return 0;
	l->copies = block_new(c->attribute_count * sizeof(*l->copies));
	if (!l->copies)
		return CUDA_ERROR_OUT_OF_MEMORY;
	raw_copy(l->copies, c->attributes, c->attribute_count * sizeof(*l->copies));
	c->attributes = l->copies;
	for (; i < c->attribute_count; i++) {
		if (!has_event(&l->copies[i]))
			continue;
		l->copies[i].words[0] = (uint64_t)object_real((void *)l->copies[i].words[0]);
		if (l->copies[i].words[0] & CUDA_DEAD)
			return CUDA_ERROR_INVALID_HANDLE;
	}
	return 0;
}

static int lower_config(struct lowered *l, const struct launch_config *config)
{
	l->config = *config;
	l->copies = NULL;
	l->config.stream = object_real(config->stream);
	if (is_dead(l->config.stream))
		return CUDA_ERROR_INVALID_HANDLE;
	return l->config.attributes ? lower_events(l) : 0;
}

static void free_lowered(const struct lowered *l)
{
	if (l->copies)
		block_free(l->copies, l->config.attribute_count * sizeof(*l->copies));
}

/* These run behind the crossing, on the lower half's thread-local storage: they call the
 * driver's function itself. */
typedef int launch(const struct launch_config *, void *, void **, void **);

static int launch_lowered(const struct launch_config *config, void *function, void **params,
	void **extra, unsigned index)
{
	launch *real = (launch *)cuda_targets[index];
	struct lowered l;
	int r;

	if (in_records_window((uintptr_t)function)) {
		struct object *o = function;

		if (!(o->flags & CUDA_OBJECT_USED))
			object_used(o);
		function = o->real;
		if (is_dead(function))
			return CUDA_ERROR_INVALID_HANDLE;
	} else if (function) {
		function_lost();
	}
	if (!config)
		return real(config, function, params, extra);
	r = lower_config(&l, config);
	if (!r)
		r = real(&l.config, function, params, extra);
	free_lowered(&l);
	return r;
}

int inner_cuLaunchKernelEx(
	const struct launch_config *config, void *function, void **params, void **extra)
{
	return launch_lowered(config, function, params, extra, INDEX_cuLaunchKernelEx);
}

int inner_cuLaunchKernelEx_ptsz(
	const struct launch_config *config, void *function, void **params, void **extra)
{
	return launch_lowered(config, function, params, extra, INDEX_cuLaunchKernelEx_ptsz);
}

typedef int occupancy(int *, void *, const struct launch_config *);

static int ask_occupancy(
	int *out, void *function, const struct launch_config *config, occupancy *real)
{
	struct lowered l;
	int r;

	if (!config)
		return real(out, function, config);
	r = lower_config(&l, config);
	if (!r)
		r = real(out, function, &l.config);
	free_lowered(&l);
	return r;
}

int body_cuOccupancyMaxPotentialClusterSize(
	int *size, void *function, const struct launch_config *config)
{
	return ask_occupancy(size, function, config, real_cuOccupancyMaxPotentialClusterSize);
}

int body_cuOccupancyMaxActiveClusters(
	int *count, void *function, const struct launch_config *config)
{
	return ask_occupancy(count, function, config, real_cuOccupancyMaxActiveClusters);
}
