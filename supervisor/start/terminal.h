/*
 * terminal.h - the settings of the controlling terminal that the program shares with the shell
 * that started it (doc/decisions/users-terminal.md): the program's while it has the terminal,
 * the shell's while the shell has it.
 *
 * A process has the terminal when its group is the foreground group; no other's is touched.
 */
#ifndef SUPERVISOR_START_TERMINAL_H
#define SUPERVISOR_START_TERMINAL_H

#include <stdbool.h>

#include "ckpt/image_read.h"
#include "ckpt/image_write.h"
#include "supervisor/start/supervisor.h"

struct fd_dump;

/* Before the program is made: what is found is what is put back in the end. */
void terminal_begin(struct supervisor *s);

/* While the program is frozen, when all its descriptors have been seen. */
void terminal_dump(
	const struct supervisor *s, const struct fd_dump *fds, struct image_writer *job);

/* Before the program of @job is let go, in the process that still has the standard streams:
 * give the terminal the program's settings. What cannot be done is told by @notice. @stopped:
 * the program is not to run yet. */
void terminal_restore(struct supervisor *s, const struct image *job, bool stopped,
	void (*notice)(const char *line));

/* Whether the program of @job can be brought back in a session without a terminal: a program that
 * reads the terminal would take from the shell what is typed there. */
int terminal_check_detached(const struct image *job, struct err *e);

/* The program has stopped, and we are about to; we have been continued. */
void terminal_stop(struct supervisor *s);
void terminal_continue(struct supervisor *s);

/* The program has ended, @killed by a signal (a checkpoint's, too), or is not brought back. */
void terminal_end(struct supervisor *s, bool killed);

/* After a restart there may be more to be done: in how many milliseconds, -1: nothing is. */
int terminal_wait_ms(const struct supervisor *s);
void terminal_turn(struct supervisor *s);

#endif
