/*
 * fd_kinds/pty_state.h - all that there is to a pseudo-terminal, read from a frozen one and given to
 * a new one: its number, settings and flags, and what is under way (fd_kinds/pty_pending.h). All
 * descriptors are ones of the caller's.
 */
#ifndef SUPERVISOR_FD_KINDS_PTY_STATE_H
#define SUPERVISOR_FD_KINDS_PTY_STATE_H

#include <stdbool.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "lib/util.h"

/* The number N in /dev/pts/N, from the device number of its slave end; -1: it is none. */
int pty_index(uint64_t rdev);
/* The device number of the terminal that @fd leads to, also if it was opened as /dev/tty. -1
 * with errno: EIO when it has been hung up. */
int pty_device(int fd, uint64_t *rdev);
/* The number of the master @fd; -1: it is none. */
int pty_index_of_master(int fd);

/* Open the other end of @master; open(2)'s @flags. -1 with errno. */
int pty_open_slave(int master, int flags);

/*
 * Fill @state and @bytes (what follows it in the image) from @master and @slave, one of the
 * program's own or -1 when it has none. What was under way is put back, also when we are killed
 * meanwhile. Errors are reasons only.
 */
int pty_save(int master, int slave, struct image_pty *state, struct buf *bytes, struct err *e);

/* Give @master and @slave (-1: it has never been opened) what was saved. */
int pty_load(int master, int slave, const struct image_pty *state, const struct buf *bytes,
	struct err *e);

#endif
