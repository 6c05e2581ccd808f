/*
 * redraw.h - have a program that was brought back draw its screen anew, on a terminal that
 * shows nothing of it.
 *
 * What programs draw anew for is SIGWINCH. Programs that use curses look whether the size is
 * another one than it was; where it is not, the terminal has one more row for a moment.
 */
#ifndef SUPERVISOR_START_REDRAW_H
#define SUPERVISOR_START_REDRAW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "lib/util.h"

enum redraw_step { REDRAW_NONE, REDRAW_TELL, REDRAW_GROWN };

struct redraw {
	enum redraw_step step;
	bool whole;          /* the program has a screen that is to be drawn as a whole */
	struct winsize seen; /* the size that it knows, */
	struct winsize size; /* and the terminal's */
	struct buf pids;     /* pid_t: of the processes that want to be told */
	int quiet;           /* so many times in a row they have been found waiting */
	uint64_t deadline;
};

/* To be done when the program waits for something: a system call that it is about to enter
 * would not be interrupted. */
void redraw_begin(struct redraw *r, const struct winsize *seen, bool whole);
int redraw_wait_ms(const struct redraw *r);
/* @fd: the terminal, -1: the program has lost it. */
void redraw_turn(struct redraw *r, int fd);
void redraw_end(struct redraw *r, int fd);

/* The size of the terminal, whatever it is for a moment. */
int redraw_size(const struct redraw *r, int fd, struct winsize *size);

#endif
