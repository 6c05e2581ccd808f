/*
 * The orders that a supervisor gives (enum lower_request), of CUDA and of MPI.
 */
#include "lower/cuda/cuda.h"
#include "lower/cuda/shared_memory.h"
#include "lower/cuda/device_copy.h"
#include "lower/mpi/mpi.h"
#include "lower/runtime.h"

int orders_start(void)
{
	return cuda_rest_start();
}

int orders_await(int order_fd)
{
	return snapshot_await_order(order_fd);
}

int orders_carry_out(struct lower_order *o)
{
	switch (o->request) {
	case LOWER_DRAIN:
		table->session = o->session;
		return mpi_check() ? -1 : cuda_drain(o->patience_ns);
	case LOWER_AGREE:
		return cuda_agree();
	case LOWER_REST:
		return cuda_await_rest(o->patience_ns);
	case LOWER_SAVE:
		return cuda_save(o->transfers, o->count);
	case LOWER_LOAD:
		return cuda_load(o->transfers, o->count);
	case LOWER_HASH:
		return cuda_hash(o->transfers, o->count);
	case LOWER_RESERVE:
		return snapshot_reserve(o->transfers, o->count);
	case LOWER_SNAPSHOT:
		return snapshot_copy(o->transfers, o->count);
	case LOWER_RELEASE:
		snapshot_release();
		return 0;
	case LOWER_MESSAGES:
		return mpi_drain(o->count, o->patience_ns);
	case LOWER_CONNECT:
		return connection_offer();
	case LOWER_REPLAY:
		return cuda_replay(0);
	case LOWER_REPLAY_REST:
		return cuda_replay_rest(0) ? -1 : mpi_replay();
	case LOWER_TRY:
		return cuda_replay(1) ? -1 : cuda_replay_rest(1);
	}
	return agent_fail("unknown request %u", o->request);
}
