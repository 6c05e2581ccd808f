/* After a restart: everything that the records hold, in a fresh driver. */
#include <string.h>

#include "lower/cuda/arrays.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/placement.h"
#include "lower/cuda/shared_memory.h"
#include "shared/cuda/memory_state.h"
#include "shared/records.h"

static int check_driver(const struct cuda_state *s)
{
	int version = 0, r = CUDA(cuDriverGetVersion, (int *))(&version);

	if (r)
		return cuda_failed("cuDriverGetVersion", r);
	if (version != s->driver_version)
		return agent_fail(
			"the driver here is for CUDA %d.%d, the program ran on one for "
			"CUDA %d.%d",
			version / 1000, version % 1000 / 10, s->driver_version / 1000,
			s->driver_version % 1000 / 10);
	return 0;
}

/* Code for a device is chosen, and addresses are given out, by its model. */
static int check_device(const struct cuda_device *wanted, unsigned i)
{
	char name[sizeof(wanted->name)] = "";
	uint64_t memory = 0;
	int device, r;

	r = CUDA(cuDeviceGet, (int *, int))(&device, i);
	if (!r)
		r = CUDA(cuDeviceGetName, (char *, int, int))(name, sizeof(name), device);
	if (!r)
		r = CUDA(cuDeviceTotalMem_v2, (size_t *, int))(&memory, device);
	if (r)
		return cuda_failed("cuDeviceGetName", r);
	if (strncmp(name, wanted->name, sizeof(name)) || memory != wanted->memory)
		return agent_fail(
			"GPU %u here is \"%s\" with %lu MiB, the program ran on \"%s\" with "
			"%lu MiB",
			i, name, memory >> 20, wanted->name, wanted->memory >> 20);
	return 0;
}

static int check_devices(const struct cuda_state *s)
{
	int count = 0, r = CUDA(cuDeviceGetCount, (int *))(&count);

	if (r)
		return cuda_failed("cuDeviceGetCount", r);
	if (count != (int)s->device_count)
		return agent_fail(
			"the program had %u GPUs, here there are %d", s->device_count, count);
	for (unsigned i = 0; i < s->device_count; i++)
		if (check_device(&s->devices[i], i))
			return -1;
	return 0;
}

/* The library makes a device usable when its handle is asked for first. The handles are the
 * same: addresses in the library, which lies where it lay. */
static int replay_nvml_devices(void)
{
	unsigned count;
	void *device;
	int r = CUDA(nvmlDeviceGetCount_v2, (unsigned *))(&count);

	if (r)
		return agent_fail("nvmlDeviceGetCount gave error %d", r);
	/* A device that the program may not query stays so. */
	for (unsigned i = 0; i < count; i++)
		(void)CUDA(nvmlDeviceGetHandleByIndex_v2, (unsigned, void **))(i, &device);
	return 0;
}

static int replay_nvml(void)
{
	for (unsigned i = 0; i < RECORDS->nvml_initialised; i++) {
		int r = RECORDS->nvml_flags
				? CUDA(nvmlInitWithFlags, (unsigned))(RECORDS->nvml_flags)
				: CUDA(nvmlInit_v2, (void))();

		if (r)
			return agent_fail("nvmlInit gave error %d", r);
	}
	return RECORDS->nvml_initialised ? replay_nvml_devices() : 0;
}

static int replay_memory(struct cuda_state *s, int trial)
{
	if (trial)
		return cuda_replay_addresses(s);
	return cuda_replay_memory(s) || cuda_replay_registrations(s) ? -1 : 0;
}

/* Nobody of the upper half holds them: it was the thread that answers other processes. */
static void reset_locks(struct cuda_state *s)
{
	s->lock = 0;
	if (s->memory)
		s->memory->lock = 0;
}

int cuda_replay(int trial)
{
	struct cuda_state *s = cuda_records();
	int r;

	if (replay_nvml())
		return -1;
	if (!s || !s->initialised)
		return 0;
	reset_locks(s);
	if (check_driver(s) || placement_keep(s))
		return -1;
	r = CUDA(cuInit, (unsigned))(0);
	if (r)
		return cuda_failed("cuInit", r);
	if (check_devices(s) || cuda_replay_contexts(s) || placement_fill() ||
		cuda_replay_objects(s) || cuda_reserve_again(s) || placement_end() ||
		replay_memory(s, trial))
		return -1;
	return trial ? 0 : cuda_share_again(s);
}

int cuda_replay_rest(int trial)
{
	struct cuda_state *s = cuda_records();

	if (!s || !s->initialised)
		return 0;
	if ((!trial && cuda_import_again(s)) || arrays_replay(s, trial) ||
		cuda_attach_managed(s) || cuda_replay_globals(s) || cuda_replay_events(s))
		return -1;
	/* Copies in graphs want memory. */
	if (trial ? cuda_try_graphs(s) : cuda_replay_graphs(s))
		return -1;
	return cuda_replay_threads(s);
}
