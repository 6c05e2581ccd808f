/*
 * fd_kinds/pty_pending.h - what is on its way through a pseudo-terminal, both ways.
 *
 * It can only be seen by reading it. All is read, and put back in the same way for a program
 * that only resumes and for a restarted one. Nobody else may use the terminal meanwhile.
 */
#ifndef SUPERVISOR_FD_KINDS_PTY_PENDING_H
#define SUPERVISOR_FD_KINDS_PTY_PENDING_H

#include <asm/termbits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/util.h"

struct pty_pending {
	struct buf lines;  /* struct image_pty_line */
	struct buf input;  /* their bytes, towards the slave */
	struct buf output; /* towards the master */
};

void pty_pending_free(struct pty_pending *p);
/* Room for all that a terminal can hold. */
void pty_pending_reserve(struct pty_pending *p);

/* Fill the empty @p from a terminal with the settings @own, and leave all as it was. @packets:
 * the master is in packet mode. *stopped gets IMAGE_PTY_STOPPED or _SUSPENDED, or 0. Allocates
 * nothing after pty_pending_reserve(). */
int pty_pending_look(int master, int slave, const struct termios2 *own, bool packets,
	struct pty_pending *p, uint32_t *stopped, struct err *e);

/* Put @p into an empty terminal, whose settings become @own. */
int pty_pending_put(int master, int slave, const struct termios2 *own,
	const struct pty_pending *p, uint32_t stopped, struct err *e);

#endif
