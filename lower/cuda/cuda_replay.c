/* After a restart: everything that the records hold, in a fresh driver. */
#include "lower/cuda/arrays.h"
#include "lower/cuda/context_replay.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/device_check.h"
#include "lower/cuda/export_tables.h"
#include "lower/cuda/placement.h"
#include "lower/cuda/shared_memory.h"
#include "shared/cuda/memory_state.h"
#include "shared/records.h"

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
	if (RECORDS->nvml_initialised && RECORDS->another_driver)
		return agent_fail(
			"the program has initialised NVML, whose handles of GPUs another "
			"build of the driver does not give again: restart it with the "
			"driver that it had");
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
		return export_tables_replay();
	reset_locks(s);
	s->driver_changed |= RECORDS->another_driver;
	if (device_check_driver(s) || placement_keep(s) || context_keep_places(s))
		return -1;
	r = CUDA(cuInit, (unsigned))(0);
	if (r)
		return cuda_failed("cuInit", r);
	if (device_check_all(s) || export_tables_replay() || cuda_replay_contexts(s) ||
		placement_fill() || cuda_replay_objects(s) || cuda_reserve_again(s) ||
		placement_end() || replay_memory(s, trial))
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
