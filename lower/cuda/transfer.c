/* Device memory to and from the staging buffer. */
#include "lower/cuda/cuda.h"

int cuda_save(const struct lower_transfer *transfers, unsigned count)
{
	return agent_fail("device memory cannot be saved yet");
}

int cuda_load(const struct lower_transfer *transfers, unsigned count)
{
	return agent_fail("device memory cannot be loaded yet");
}
