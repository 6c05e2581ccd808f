/*
 * uring/uring_inspect.h - an io_uring of a frozen process, and questions that change nothing in
 * it.
 */
#ifndef SUPERVISOR_URING_URING_INSPECT_H
#define SUPERVISOR_URING_URING_INSPECT_H

#include "supervisor/fd/fd.h"
#include "supervisor/target/process.h"
#include "supervisor/uring/uring_memory.h"
#include "supervisor/uring/uring_fdinfo.h"

struct uring_look {
	const struct fd_source *s;
	struct process *process;
	struct thread
		*issuer; /* the only thread that may use it; NULL: any thread that has it may */
	struct uring_info info;
	struct ring ring; /* mapped, when its flags are known */
	uint32_t flags;
	bool has_eventfd;
};

/* io_uring_register(2) by a thread that may. */
int uring_ask(struct uring_look *u, unsigned opcode, uint64_t argument, unsigned count,
	int64_t *result, struct err *e);

/* Read u->info again. */
int uring_look_again(struct uring_look *u, struct err *e);

/* Fill u->issuer. Fails for a ring that is not enabled yet, or restricted. */
int uring_find_issuer(struct uring_look *u, struct err *e);

/* Fill u->flags and map it. The kernel does not tell the flags, but acts by them. */
int uring_find_flags(struct uring_look *u, struct err *e);

/* A system call by @t of the ring's process. */
int uring_call_as(struct uring_look *u, struct thread *t, long nr, const uint64_t args[6],
	int64_t *result, struct err *e);

#endif
