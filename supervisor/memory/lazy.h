/*
 * memory/lazy.h - memory of a restarted program that is filled on demand, and in the background
 * (trecr-restart --lazy).
 *
 * A process of its own does it (page_server.h). It continues when the supervisor is killed; and
 * the supervisor holds what it holds, so that pages that are missing cannot be taken for pages of
 * zeros when it is killed. Why so: doc/decisions/lazy.md.
 *
 * When a page cannot be filled, the thread that waits for it never sees anything else in its place:
 *
 *	its block is damaged, or cannot be read (EIO)	the program is ended, with a message
 *	the file system of the image does not answer	all threads that touch missing pages wait, without a limit
 *	the kernel has no memory for it (ENOMEM)	tried again for 30 s, then the program is ended
 *	the page server is killed			the supervisor ends the program
 *	the supervisor is killed, too			threads that touch missing pages wait until they are killed
 */
#ifndef SUPERVISOR_MEMORY_LAZY_H
#define SUPERVISOR_MEMORY_LAZY_H

#include <stdbool.h>
#include <sys/types.h>

#include "ckpt/store.h"
#include "lib/err.h"
#include "lib/util.h"

struct lazy;

/* Whether the kernel allows it to this user; else -1, and @e says why not. */
int lazy_check(struct err *e);

/* Start the process that fills the memory of @c's processes. NULL on failure. */
struct lazy *lazy_begin(const struct checkpoint *c, struct err *e);

/* A process that has mapped its memory, @ranges of it (struct address_range) without contents. */
struct lazy_process {
	size_t index; /* in the checkpoint */
	pid_t pid;
	int uffd;   /* a new userfaultfd of it */
	int anchor; /* of anchor_make(), or -1; open until lazy_let_go() has returned */
	const struct buf *ranges;
};

/* From now on a thread that touches a page there waits for it. The descriptors stay the caller's. */
int lazy_add(struct lazy *l, const struct lazy_process *p, struct err *e);

/* All have been added, and are about to run: what is left is filled in the background. */
int lazy_let_go(struct lazy *l, struct err *e);

/* The restart has failed, and its processes are gone. Frees @l. */
void lazy_abort(struct lazy *l);

pid_t lazy_pid(const struct lazy *l);
/* Whether its process has said, since this was last asked, that memory cannot be filled; @e is what
 * it said. It says so before it kills the program, so this is known when the program's end is. */
bool lazy_failed(struct lazy *l, struct err *e);
/* Its process has ended, with @status as of waitpid(2), and been waited for: whether all memory is
 * there. If not, the program must not run on, and @e says why, unless lazy_failed() has. */
bool lazy_is_whole(struct lazy *l, int status, struct err *e);
/* When the program is whole, or has been ended. Frees @l. */
void lazy_end(struct lazy *l);

#endif
