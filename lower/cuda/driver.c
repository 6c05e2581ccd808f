/* The driver's functions, for the agent. */
#include "lower/cuda/cuda.h"
#include "lower/records.h"

static int missing(void)
{
	return CUDA_MISSING;
}

void *cuda_function(const char *name)
{
	void *function = library_symbol(name);

	return function ? function : (void *)missing;
}

int cuda_failed(const char *name, int r)
{
	const char *text = NULL;

	if (CUDA(cuGetErrorString, (int, const char **))(r, &text) || !text)
		return agent_fail("%s gave error %d", name, r);
	return agent_fail("%s gave error %d (%s)", name, r, text);
}

struct cuda_state *cuda_records(void)
{
	/* Mapped before the lower half was brought up. */
	return CUDA_STATE->magic == CUDA_STATE_MAGIC ? CUDA_STATE : NULL;
}
