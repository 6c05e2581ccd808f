/*
 * remote_query.h - ask a stopped thread for much at once.
 *
 * A system call by remote_call() stops the thread twice, and each stop is a way to another
 * processor and back. Here the thread makes all calls on its own and is stopped once behind
 * them, and once more where a page has to be unmapped. That it goes home by itself when the
 * supervisor is killed meanwhile holds as there.
 */
#ifndef SUPERVISOR_TARGET_REMOTE_QUERY_H
#define SUPERVISOR_TARGET_REMOTE_QUERY_H

#include "supervisor/target/remote.h"

struct remote_query {
	long nr;
	uint64_t args[4]; /* the others are 0 */
	/* Where argument @out_arg (from 1; 0: none) leads to there: @size bytes, which come to
	 * lie at @out here. All together at most REMOTE_QUERY_BYTES, of which each takes a
	 * multiple of 8. */
	int out_arg;
	void *out;
	size_t size;
	int64_t result; /* what the kernel returned; the call must not block */
};

#define REMOTE_QUERY_BYTES 3072
#define REMOTE_QUERY_MAX   100 /* in one call of the function */

/* Scratch memory (remote_scratch()) of one page for the caller's use between calls of remote_query(), with which
 * all queries of one call are made in one go. Without it, they are as many at once as the room in the vdso makes
 * them. 0 on failure. */
uint64_t remote_query_scratch(struct remote *r, struct err *e);

/* Inside of a bracket. @out of calls that fail is zero. */
int remote_query(struct remote *r, struct remote_query *queries, size_t count, struct err *e);

#endif
