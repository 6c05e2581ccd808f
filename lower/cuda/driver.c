/* The driver's functions, for the agent. */
#include "lower/cuda/cuda.h"
#include "shared/records.h"

static int function_missing(void)
{
	return CUDA_MISSING;
}

void *cuda_function(const char *name)
{
	void *function = library_symbol(name);

	return function ? function : (void *)function_missing;
}

/* CUDA_ERROR_OUT_OF_MEMORY; CUDA_ERROR_DEVICE_UNAVAILABLE, as of a device that one process may
 * use at a time (cuCtxCreate); CUDA_ERROR_MPS_MAX_CLIENTS_REACHED and _CONNECTIONS_REACHED. */
static int is_for_want_of_room(int r)
{
	return table->order.request == LOWER_TRY && (r == 2 || r == 46 || r == 808 || r == 809);
}

int cuda_failed(const char *name, int r)
{
	int why = is_for_want_of_room(r) ? LOWER_NO_ROOM : LOWER_FAILED;
	const char *text = NULL;

	if (CUDA(cuGetErrorString, (int, const char **))(r, &text) || !text)
		return agent_fail_for(why, "%s gave error %d", name, r);
	return agent_fail_for(why, "%s gave error %d (%s)", name, r, text);
}

struct cuda_state *cuda_records(void)
{
	/* Mapped before the lower half was brought up. */
	return CUDA_STATE->magic == CUDA_STATE_MAGIC ? CUDA_STATE : NULL;
}
