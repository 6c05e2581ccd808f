/*
 * spawn.h - make the root process: of a new program, or of one that is brought back with the
 * id it had.
 */
#ifndef SUPERVISOR_SPAWN_H
#define SUPERVISOR_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/err.h"
#include "supervisor/supervisor.h"

/*
 * Start @argv as trecr-run does: fork, put signals back to what they were when the tool was
 * started, execvp. Fills s->root. On failure *status is the exit status to end with (126
 * found but not executable, 127 not found, 125 other).
 */
int spawn_program(struct supervisor *s, char *const argv[], int *status, struct err *e);

/*
 * Make a process with id @pid for a restart and run @child(@arg) in it; @child does not
 * return. Where the id is free and the capability is there, it is a child of ours
 * (clone3(set_tid)). Otherwise, or with @force_namespace, it is made in a fresh user, pid and
 * mount namespace with an init of its own and a matching /proc, and *notice says why.
 * Fills s->root, s->init, s->init_fd. The child waits until the caller calls
 * spawn_release() (so that it can be seized first); it dies with the caller until then.
 */
int spawn_restored(struct supervisor *s, pid_t pid, void (*child)(void *arg), void *arg,
	bool force_namespace, char **notice, struct err *e);
int spawn_release(struct supervisor *s, struct err *e);

#endif
