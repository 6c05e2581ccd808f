/*
 * call_replay.h - a call of the records is made again.
 *
 * Functions return 0, or -1 by agent_fail().
 */
#ifndef LOWER_CUDA_CALL_REPLAY_H
#define LOWER_CUDA_CALL_REPLAY_H

#include "shared/cuda/calls.h"
#include "shared/cuda/cuda_state.h"

extern const struct call_info cuda_info[];

struct call_again {
	const struct call_info *info;
	uint64_t words[CALL_WORDS];
	void *scratch[CALL_WORDS]; /* by parameter: where results go */
	void *real;                /* the handle that came out */
};

/* Its arguments for this driver. The caller ends it with call_finish(), also after a failure.
 */
int call_prepare(struct call_again *again, const struct cuda_call *call);
/* The same for a call whose results are addresses: in the record they are values, which
 * call_bytes() must not follow, so one word each is enough. */
int call_prepare_address(struct call_again *again, const struct cuda_call *call);
int call_invoke(const struct call_again *again);
/* Results that the program has seen stand in the record in place of where they went to. */
int call_verify(const struct call_again *again, const struct cuda_call *call);
void call_finish(struct call_again *again);

/* All of it for a call that creates one handle: *real is the new one. */
int call_create(const struct cuda_call *call, void **real);

#endif
