/*
 * cuda.h - what the agent does about CUDA. It runs on the lower half's libc, on a thread of its
 * own, and calls the driver directly; what to do it reads from the records of the
 * upper half (shared/cuda/cuda_state.h), whose threads are stopped meanwhile. A process without
 * CUDA_STATE has nothing here to be done.
 *
 * Functions return 0, or -1 by agent_fail().
 */
#ifndef LOWER_CUDA_CUDA_H
#define LOWER_CUDA_CUDA_H

#include <stdint.h>

#include "lower/runtime.h"
#include "shared/cuda/cuda_state.h"

/* Wait until the devices have done all that was asked of them; what is alive down here and has
 * no record, or a record that cannot be replayed, is refused. */
int cuda_drain(uint64_t patience_ns);
/* From the lower half's start on, a thread that waits for devices. 0 or -errno. */
int cuda_rest_start(void);
/* Wait until all contexts have done what was asked of them; fails as LOWER_RESTLESS. */
int cuda_rest(const struct cuda_state *s, uint64_t patience_ns);
/* Wait again for the streams that the last cuda_rest() waited for in vain; threads of the upper
 * half may run. */
int cuda_await_rest(uint64_t patience_ns);
/* Device memory to and from the staging buffer, which is made if need be. */
int cuda_save(const struct lower_transfer *transfers, unsigned count);
int cuda_load(const struct lower_transfer *transfers, unsigned count);
/* Hashes of its blocks into that buffer; fails as LOWER_UNABLE where there is no kernel for it. */
int cuda_hash(const struct lower_transfer *transfers, unsigned count);
/* Everything that the records hold, in a fresh driver. With @trial the process is to go again:
 * of memory only addresses are reserved. */
int cuda_replay(int trial);
/* And what depends on other processes, when they have done so: the rest. */
int cuda_replay_rest(int trial);

/* Steps of these two, in this order. */
int cuda_replay_contexts(struct cuda_state *s);
int cuda_replay_memory(struct cuda_state *s);
int cuda_replay_imported(struct cuda_state *s);  /* mappings of what is another process's */
int cuda_replay_addresses(struct cuda_state *s); /* in a trial, in the place of memory */
int cuda_replay_objects(struct cuda_state *s);
int cuda_reserve_again(
	const struct cuda_state *s); /* what the program has; before placement_end() */
int cuda_replay_registrations(struct cuda_state *s); /* in contexts that objects come with */
int cuda_replay_globals(struct cuda_state *s);
/* The variables of @o in @context, NULL: in all, are where they were. Loads a library there. */
int cuda_verify_globals(const struct object *o, const void *context);
/* The same of a copy, as far as their places are empty. 1: they are; 0: they are not. */
int cuda_globals_match(const struct object *o, const void *context);
int cuda_replay_events(struct cuda_state *s);
int cuda_replay_graphs(struct cuda_state *s);    /* with the memory that copies name */
int cuda_try_graphs(const struct cuda_state *s); /* what there is without that */
int cuda_replay_threads(struct cuda_state *s);
/* Lists are by the driver's handles, which are others now. */
void cuda_enlist(struct cuda_state *s);
/* Before a checkpoint: into the records goes what only the driver knows. */
int cuda_save_globals(struct cuda_state *s);
int cuda_save_events(struct cuda_state *s);
int cuda_save_threads(struct cuda_state *s);
/* When memory has been listed. */
int cuda_save_graphs(struct cuda_state *s);
/* All work is done: user objects without references have ended, or will in a moment. */
int cuda_check_user_objects(const struct cuda_state *s);
/* What memory is live; refuses what cannot be made again. */
int cuda_list_memory(struct cuda_state *s);

struct memory_managed;

/* Managed memory again, where it was (placement.h). */
int cuda_make_managed(const struct memory_managed *m);
/* To its streams, when these have been made again. */
int cuda_attach_managed(const struct cuda_state *s);

/* Make a context on @device current: the first, which is there before all others of it. */
int cuda_push_context(unsigned device);

/* The context that @o belongs to; one at all, if it was made without. */
void *cuda_context_of(const struct cuda_state *s, const struct object *o);
/* The ordinal of a context's device; -1: it is not known. */
int cuda_device_of(const struct object *context);
/* @o is the primary context of @device. */
int cuda_is_primary(const struct object *o, unsigned device);

/* The records, or NULL: the process has not used CUDA (nor have the records been mapped). */
struct cuda_state *cuda_records(void);

/*
 * The driver's function NAME, with its type: CUDA(cuCtxSynchronize, (void))(). Looked up once.
 * A driver that lacks it gives CUDA_MISSING.
 */
#define CUDA_MISSING 500
#ifdef __cppcheck__ /* cannot parse the other */
#define CUDA(name, parameters) ((int (*)())cuda_function(#name))
#else
#define CUDA(name, parameters)                                                                 \
	({                                                                                     \
		static int(*function_) parameters;                                             \
		if (!function_)                                                                \
			function_ = (int(*) parameters)cuda_function(#name);                   \
		function_;                                                                     \
	})
#endif
void *cuda_function(const char *name);

/* "cuInit gave 100 (no CUDA-capable device is detected)": for @name's result @r; returns -1. */
int cuda_failed(const char *name, int r);

#endif
