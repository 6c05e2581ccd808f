/*
 * uring/uring_waiting.h - which requests wait in an io_uring.
 *
 * The kernel lists them nowhere. But the memory of a ring still holds its last entries and its
 * last completions: what was submitted and has no completion waits. Whether that is all is told
 * by the ring's counters and by the operations that the kernel lists as waiting for files;
 * where these do not agree, nothing is known.
 */
#ifndef SUPERVISOR_URING_URING_WAITING_H
#define SUPERVISOR_URING_URING_WAITING_H

#include "supervisor/uring/uring_inspect.h"

struct uring_entry {
	uint32_t number; /* it was the ring's submission of this number, from 0 */
	const struct io_uring_sqe *sqe;
	bool waits;
};

struct uring_window {
	struct buf entries;  /* struct uring_entry, the oldest first */
	struct buf done;     /* uint64_t: user_data of last completions, ordered */
	bool all_entries;    /* of the ring's life are there */
	bool all_done;       /* likewise */
	bool uncounted;      /* a request may have several completions, or none */
	uint32_t wait_count; /* entries that wait */
};

/* Each request that is taken ends with one completion, if none is uncounted: how many have not.
 */
int32_t uring_under_way(const struct uring_look *u);

/* Find out, of a ring whose entries have all been taken. Fails where nothing shows for sure,
 * with what is known. The caller releases @w, also after a failure. */
int uring_window_look(struct uring_window *w, const struct uring_look *u, struct err *e);
void uring_window_release(struct uring_window *w);

#endif
