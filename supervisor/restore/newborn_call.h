/*
 * restore/newborn_call.h - a process of a restart that has nothing of its program yet: it stands
 * still, a copy of trecr-restart, and makes the system calls that the supervisor puts into it,
 * one at a time. It runs no code for that, and uses no memory but what all new processes share
 * (struct creation_page): so it may have its own in common with others.
 */
#ifndef SUPERVISOR_RESTORE_NEWBORN_CALL_H
#define SUPERVISOR_RESTORE_NEWBORN_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "supervisor/target/tracee.h"

struct creation;
struct restore;

/* What one has been let run for. */
enum newborn_goal {
	NEWBORN_STANDS = 0, /* it has not: it is stopped */
	NEWBORN_TRAPS,      /* it comes to newborn_stop() */
	NEWBORN_EXECUTES,   /* it executes its program's file */
	NEWBORN_ENDS,
};

struct newborn {
	struct tracee t; /* tid 0: it has not been made */
	pid_t id;        /* as it knows it */
	enum newborn_goal goal;
};

/* Have @n make system call @nr. *result is what the kernel returns (-errno for an error, which
 * is no failure of this function). The call must not block. */
int newborn_call(
	struct restore *r, struct newborn *n, int64_t *result, long nr, const uint64_t args[6]);
#define NEWBORN_CALL(r, n, result, nr, ...)                                                    \
	newborn_call((r), (n), (result), (nr), (const uint64_t[6]){__VA_ARGS__})

/* Have @n make process @made by clone3(2) with @flags, the @id and, without CLONE_PARENT, the
 * @exit_signal; *result as above. */
int newborn_clone(struct restore *r, struct newborn *n, struct newborn *made, uint64_t flags,
	pid_t id, int exit_signal, int64_t *result);

/* Let @n, whose memory nobody else uses meanwhile, run @function(@b, @node) for @goal. */
int newborn_run(struct restore *r, struct newborn *n,
	void (*function)(struct creation *creation, size_t), size_t node,
	enum newborn_goal goal);

/* Have @n exit with status 0. */
int newborn_exit(struct restore *r, struct newborn *n);

/* In the new process: stand still. */
void __attribute__((noreturn)) newborn_stop(void);

#endif
