/*
 * redraw.c - which processes wait for the signal, and the change of the terminal's size and
 * back, each when all of them sleep without such a signal pending.
 */
#include "supervisor/start/redraw.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"

#define STEP_MS  5
#define QUIET    2             /* looks: one may fall into the moment before it wakes up */
#define LIMIT_NS 1000000000ull /* for busy programs, which look when they have time */

static bool same_size(const struct winsize *a, const struct winsize *b)
{
	return a->ws_row == b->ws_row && a->ws_col == b->ws_col;
}

int redraw_size(const struct redraw *r, int fd, struct winsize *size)
{
	if (ioctl(fd, TIOCGWINSZ, size))
		return -1;
	if (r->step == REDRAW_GROWN)
		*size = r->size;
	return 0;
}

/* ---- the processes ---- */

static bool has_signal(const char *status, const char *key)
{
	return status_number(status, key, 16) >> (SIGWINCH - 1) & 1;
}

/* By a handler, or by what reads a signal that is blocked. */
static bool wants_it(pid_t pid)
{
	cleanup_free char *status = procfs_status(pid, pid, NULL);

	return status && (has_signal(status, "SigCgt") || has_signal(status, "SigBlk"));
}

static void find_in_group(struct redraw *r, pid_t parent, pid_t group)
{
	cleanup_free pid_t *pids = NULL;
	size_t count;

	if (procfs_children(parent, &pids, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++) {
		if (getpgid(pids[i]) == group && wants_it(pids[i]))
			buf_push(&r->pids, pid_t, &pids[i]);
		find_in_group(r, pids[i], group);
	}
}

static bool is_waiting(pid_t pid)
{
	cleanup_free char *status = procfs_status(pid, pid, NULL);
	const char *state = status ? status_value(status, "State") : "";

	/* A process that has ended, or is stopped, will not take it. */
	if (*state != 'S')
		return *state != 'R' && *state != 'D';
	return has_signal(status, "SigBlk") ||
	       !(has_signal(status, "SigPnd") || has_signal(status, "ShdPnd"));
}

static bool all_wait(struct redraw *r)
{
	bool all = true;

	for (size_t i = 0; i < buf_count(&r->pids, pid_t) && all; i++)
		all = is_waiting(*buf_at(&r->pids, pid_t, i));
	r->quiet = all ? r->quiet + 1 : 0;
	return r->quiet >= QUIET || clock_ns(CLOCK_MONOTONIC) > r->deadline;
}

/* ---- steps ---- */

static void turn_to(struct redraw *r, enum redraw_step step)
{
	r->step = step;
	r->quiet = 0;
	r->deadline = clock_ns(CLOCK_MONOTONIC) + LIMIT_NS;
}

void redraw_begin(struct redraw *r, const struct winsize *seen, bool whole)
{
	r->seen = *seen;
	r->whole = whole;
	turn_to(r, REDRAW_TELL);
}

int redraw_wait_ms(const struct redraw *r)
{
	return r->step == REDRAW_NONE ? -1 : STEP_MS;
}

/* The kernel tells the foreground group of another size. */
static void change_size(struct redraw *r, int fd)
{
	struct winsize grown;

	if (ioctl(fd, TIOCGWINSZ, &r->size))
		return;
	if (same_size(&r->size, &r->seen) && r->whole && r->size.ws_row) {
		grown = r->size;
		grown.ws_row++;
		if (!ioctl(fd, TIOCSWINSZ, &grown))
			turn_to(r, REDRAW_GROWN);
	} else if (!same_size(&r->size, &r->seen)) {
		for (size_t i = 0; i < buf_count(&r->pids, pid_t); i++)
			(void)kill(*buf_at(&r->pids, pid_t, i), SIGWINCH); /* ended: fine */
	}
}

void redraw_turn(struct redraw *r, int fd)
{
	if (fd < 0 || r->step == REDRAW_GROWN) {
		if (fd < 0 || all_wait(r))
			redraw_end(r, fd);
		return;
	}
	if (!r->pids.len)
		find_in_group(r, getpid(), tcgetpgrp(fd));
	if (!r->pids.len)
		redraw_end(r, fd);
	if (r->step == REDRAW_NONE || !all_wait(r))
		return;
	r->step = REDRAW_NONE;
	change_size(r, fd);
	if (r->step == REDRAW_NONE)
		redraw_end(r, fd);
}

/* A size that has been set by another since is left. */
void redraw_end(struct redraw *r, int fd)
{
	struct winsize now, size = r->size;

	size.ws_row++;
	if (r->step == REDRAW_GROWN && fd >= 0 && !ioctl(fd, TIOCGWINSZ, &now) &&
		same_size(&now, &size))
		(void)ioctl(fd, TIOCSWINSZ, &r->size);
	r->step = REDRAW_NONE;
	buf_free(&r->pids);
}
