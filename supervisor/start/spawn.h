/*
 * spawn.h - make the root process: of a new program, or, with the id it had, of a program that
 * is restarted.
 */
#ifndef SUPERVISOR_START_SPAWN_H
#define SUPERVISOR_START_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/err.h"
#include "supervisor/start/shared_namespace.h"
#include "supervisor/start/supervisor.h"
#include "supervisor/target/clocks.h"

/*
 * Start @argv as trecr-run does: fork, put signals back to what they were when the tool was
 * started, execvp. Fills s->root. On failure *status is the exit status to end with (126
 * found but not executable, 127 not found, 125 other).
 */
int spawn_program(struct supervisor *s, char *const argv[], int *status, struct err *e);

struct spawn_request {
	const char *reason; /* to make it in a namespace in any case; NULL: none */
	bool user;          /* which is a user namespace, too, whatever privileges we have */
	bool ipc;           /* in an IPC namespace of its own, too */
	bool ipc_apart; /* the same, if it is to be in a pid namespace of its own for any reason */
	bool terminals; /* /dev/pts is to be a new one: a number is in use in the old one */
	/* In a time namespace, as of clocks_plan(); NULL: none. */
	const struct clock_shifts *clocks;
	/* In this one in any case, with our IPC namespace, and @user is as it is; NULL: none. */
	const struct shared_namespace *shared;
};

/* What s->init is, for messages. */
const char *spawn_init_name(const struct supervisor *s);

/* Whether we may choose the ids of new processes, as far as they are free. */
bool spawn_may_choose_ids(void);

/*
 * Make a process with id @pid for a restart and run @child(@arg) in it; @child does not
 * return. Where the id is free and the capability is there, it is a child of ours
 * (clone3(set_tid)). Otherwise, or when the caller has a reason, it is made in a fresh pid and
 * mount namespace (and, without CAP_SYS_ADMIN, user namespace) with an init of its own and a
 * matching /proc, or in the shared one that the caller names, and *notice, the caller's to free, says why (else it is NULL). Id 1 is
 * refused. Fills s->root, s->init, s->init_fd, s->init_is_first, s->release_fd.
 *
 * The child waits until spawn_release(), so that it can be seized first; it dies with the
 * caller until then. It has all descriptors of the caller, the signal mask and dispositions
 * from before loop_prepare(), and in a user namespace CAP_SYS_ADMIN, CAP_CHECKPOINT_RESTORE,
 * CAP_SYS_RESOURCE and CAP_SETPCAP as ambient capabilities, so that they outlast execve(2): the
 * restart has to set the program's own in the end. It was made without the C library's
 * knowledge (clone.h). To be called in the supervisor's main thread: the child dies with the
 * thread that made it.
 */
int spawn_restored(struct supervisor *s, pid_t pid, void (*child)(void *arg), void *arg,
	const struct spawn_request *request, char **notice, struct err *e);
int spawn_release(struct supervisor *s, struct err *e);

/* Whether a process with id @pid could be made so, once that id is free. */
int spawn_check(pid_t pid, struct err *e);

#endif
