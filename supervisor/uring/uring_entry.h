/*
 * uring/uring_entry.h - what an entry of an io_uring asks for (man io_uring_enter).
 */
#ifndef SUPERVISOR_URING_URING_ENTRY_H
#define SUPERVISOR_URING_URING_ENTRY_H

#include <time.h>

#include "supervisor/uring/uring_inspect.h"

/* The name of an operation, as in IORING_OP_*. */
const char *uring_request_name(unsigned op);

/* How many completions it will have is not known beforehand. */
bool uring_request_is_uncounted(const struct io_uring_sqe *sqe);

/* It does not wait, and has no completion if it succeeds. */
bool uring_request_ends_silently(const struct io_uring_sqe *sqe);

/* It waits for something that is no file. */
bool uring_request_sleeps(const struct io_uring_sqe *sqe);

/* It waits until *ns nanoseconds by *clock, which counts from the start of the machine. */
bool uring_request_ends_at(const struct uring_look *u, const struct io_uring_sqe *sqe,
	clockid_t *clock, uint64_t *ns);

/* Whether it does what it was to do when it is issued once more, by what the process has in its
 * memory and its descriptors; if not, why. */
int uring_request_check(
	const struct uring_look *u, const struct io_uring_sqe *sqe, struct err *e);

/* Whether it changes the waiting request @other. */
bool uring_request_changes(const struct io_uring_sqe *sqe, const struct io_uring_sqe *other);

#endif
