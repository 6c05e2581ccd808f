/*
 * terminal.c - at a checkpoint the settings are saved; at a restart, a stop and a resumption
 * they are exchanged.
 */
#include "supervisor/start/terminal.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "supervisor/fd_kinds/inherited_stream.h"
#include "supervisor/start/redraw.h"

#define FOREGROUND_MS 250

_Static_assert(
	sizeof(struct termios2) == sizeof(((struct image_terminal *)0)->program), "termios2");

struct terminal {
	pid_t group;            /* of the tree, that was the foreground group; 0: none */
	bool known;             /* the shell's settings, as they were when it last handed the
				 */
	struct termios2 caller; /* terminal over */
	bool has_original; /* what the program takes for these: the settings at its first start */
	struct termios2 original;
	bool shown;     /* our standard output is the terminal */
	bool restarted; /* the program has been brought back, */
	bool set;       /* and been given its settings */
	bool pending;   /* it is to be given these once it has the terminal again: */
	struct termios2 program;
	struct winsize
		size; /* that the program has seen last, where it has been brought back */
	bool here;    /* the program uses the terminal */
	bool drawn;   /* it has been told to draw its screen anew */
	struct redraw redraw;
};

static int open_terminal(void)
{
	return open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

static bool same_settings(const struct termios2 *a, const struct termios2 *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* As a shell hands it over; what looks otherwise has been set by a program. */
static bool is_plain(const struct termios2 *t)
{
	return t->c_lflag & ICANON && t->c_lflag & ECHO && t->c_lflag & ISIG;
}

/* ---- whether the tree has the terminal ---- */

static bool tree_has_group(pid_t parent, pid_t group)
{
	cleanup_free pid_t *pids = NULL;
	size_t count;

	if (procfs_children(parent, &pids, &count, NULL))
		return false;
	for (size_t i = 0; i < count; i++)
		if (getpgid(pids[i]) == group || tree_has_group(pids[i], group))
			return true;
	return false;
}

static bool group_is_gone(pid_t group)
{
	return group > 0 && kill(-group, 0) && errno == ESRCH;
}

/* A group in which nobody lives any more is ours if it was so when it was last seen: a shell
 * may be about to take the terminal back from another. */
static bool is_ours(struct terminal *t, int fd)
{
	pid_t group = tcgetpgrp(fd);

	if (group < 0)
		return false;
	if (group == getpgrp() || (group == t->group && group_is_gone(group)))
		return true;
	if (!group || !tree_has_group(getpid(), group))
		return false;
	t->group = group;
	return true;
}

/* The terminal, if we or the program have it: a descriptor and its settings in @now. Else -1.
 */
static int open_ours(struct terminal *t, struct termios2 *now)
{
	int fd = open_terminal();

	if (fd < 0 || (is_ours(t, fd) && !ioctl(fd, TCGETS2, now)))
		return fd;
	close(fd);
	return -1;
}

/* SIGTTOU is blocked here, so that even a group in the background is let do it. A terminal
 * that was hung up meanwhile needs no settings any more. */
static void set_settings(int fd, const struct termios2 *t)
{
	(void)ioctl(fd, TCSETS2, t);
}

/* ---- the shell's ---- */

void terminal_begin(struct supervisor *s)
{
	cleanup_fd int fd = open_terminal();
	struct terminal *t = s->terminal = xcalloc(1, sizeof(*t));

	if (fd < 0)
		return;
	t->shown = fd_terminal_of(STDOUT_FILENO) == fd_terminal_of(fd);
	t->known = tcgetpgrp(fd) == getpgrp() && !ioctl(fd, TCGETS2, &t->caller);
	t->has_original = t->known;
	t->original = t->caller;
}

/* We have got the terminal, the program maybe before us. */
static void learn_settings(struct terminal *t, const struct termios2 *now)
{
	if (!is_plain(now))
		return;
	t->caller = *now;
	t->known = true;
	if (t->has_original)
		return;
	t->original = *now;
	t->has_original = true;
}

/* ---- a checkpoint ---- */

static void fill_size(struct image_terminal *x, const struct winsize *size)
{
	x->rows = size->ws_row;
	x->columns = size->ws_col;
	x->x_pixels = size->ws_xpixel;
	x->y_pixels = size->ws_ypixel;
}

/* While the shell has the terminal, the program's settings are as it will get them again.
 * A program that sees to that itself has put the shell's back. */
static bool fill_terminal(struct terminal *t, int fd, struct image_terminal *x)
{
	struct termios2 now = t->original;
	struct winsize size = t->size;

	if (t->pending)
		now = t->program;
	else if (fd >= 0 && is_ours(t, fd)) {
		if (ioctl(fd, TCGETS2, &now) || redraw_size(&t->redraw, fd, &size))
			return false;
	} else if (!t->has_original)
		return false;
	memcpy(x->program, &now, sizeof(now));
	memcpy(x->original, &t->original, sizeof(t->original));
	fill_size(x, &size);
	return true;
}

void terminal_dump(
	const struct supervisor *s, const struct fd_dump *fds, struct image_writer *job)
{
	struct terminal *t = s->terminal;
	cleanup_fd int fd = open_terminal();
	struct image_terminal x = {.flags = t->has_original ? IMAGE_TERMINAL_ORIGINAL : 0};

	if (fd >= 0)
		x.flags |= fd_dump_ways_to_terminal(fds, fd_terminal_of(fd));
	else if (t->pending)
		x.flags |= IMAGE_TERMINAL_STREAMS;
	if (x.flags & ~IMAGE_TERMINAL_ORIGINAL && fill_terminal(t, fd, &x))
		image_writer_note(job, IMAGE_NOTE_TERMINAL, &x, sizeof(x));
}

/* ---- a restart ---- */

static const struct image_terminal *terminal_of(const struct image *job)
{
	size_t count;

	return image_note_array(job, IMAGE_NOTE_TERMINAL, struct image_terminal, &count);
}

/* What it has not set, it has no need of. */
static bool is_set_up(const struct image_terminal *x)
{
	return !(x->flags & IMAGE_TERMINAL_ORIGINAL) ||
	       memcmp(x->program, x->original, sizeof(x->program));
}

int terminal_check_detached(const struct image *job, struct err *e)
{
	const struct image_terminal *x = terminal_of(job);

	if (!x || !is_set_up(x) || !isatty(STDIN_FILENO))
		return 0;
	return err_set(e, 0,
		"the program uses its terminal, and this one stays with the shell: restart it "
		"without --detach, or with another standard input (</dev/null)");
}

static void take_over(struct terminal *t, const struct image_terminal *x)
{
	t->restarted = true;
	memcpy(&t->program, x->program, sizeof(t->program));
	memcpy(&t->original, x->original, sizeof(t->original));
	t->has_original = x->flags & IMAGE_TERMINAL_ORIGINAL;
	t->size = (struct winsize){x->rows, x->columns, x->x_pixels, x->y_pixels};
	t->pending = is_set_up(x);
}

/* Whether the program's terminal is ours again: a terminal that is only behind other streams than
 * before is not what the program has set up. */
static bool is_here(const struct image_terminal *x)
{
	cleanup_fd int fd = open_terminal();
	uint64_t device = fd < 0 ? 0 : fd_terminal_of(fd);

	for (int i = 0; device && i < 3; i++)
		if (x->flags & IMAGE_TERMINAL_STREAM(i) && fd_terminal_of(i) == device)
			return true;
	return device && x->flags & IMAGE_TERMINAL_OPENED;
}

/* The program has the terminal, or will have it as soon as it runs. */
static void hand_over(struct terminal *t, int fd, const struct termios2 *now)
{
	if (t->pending && !same_settings(now, &t->program))
		set_settings(fd, &t->program);
	t->set |= t->pending;
	t->pending = false;
	if (t->restarted && !t->drawn)
		redraw_begin(&t->redraw, &t->size, !is_plain(&t->program));
	t->drawn = true;
}

void terminal_restore(struct supervisor *s, const struct image *job, bool stopped,
	void (*notice)(const char *line))
{
	struct terminal *t = s->terminal;
	const struct image_terminal *x = terminal_of(job);
	struct termios2 now;
	int fd;

	if (!x)
		return;
	take_over(t, x);
	t->here = is_here(x);
	if (!t->here && t->pending && notice)
		notice("the program had changed the settings of its terminal, and there is "
		       "none here: neither settings nor screen are restored");
	fd = t->here && !stopped && t->known ? open_ours(t, &now) : -1;
	if (fd < 0)
		return;
	hand_over(t, fd, &now);
	close(fd);
}

/* ---- turns ---- */

void terminal_stop(struct supervisor *s)
{
	struct terminal *t = s->terminal;
	struct termios2 now;
	int fd = open_ours(t, &now);

	if (fd < 0)
		return;
	redraw_end(&t->redraw, fd);
	if (t->known && !same_settings(&now, &t->caller)) {
		/* A program that sees to it itself has put back what it takes for the shell's,
		 * and sets its own again. */
		if (!t->has_original || !same_settings(&now, &t->original)) {
			t->program = now;
			t->pending = t->here = true;
		}
		set_settings(fd, &t->caller);
	}
	close(fd);
}

/* Settings that the program has made already are left. */
static void get_it_back(struct terminal *t)
{
	struct termios2 now;
	int fd = open_ours(t, &now);

	if (fd < 0)
		return;
	learn_settings(t, &now);
	if (!is_plain(&now))
		t->pending = false;
	if (t->here)
		hand_over(t, fd, &now);
	close(fd);
}

void terminal_continue(struct supervisor *s)
{
	get_it_back(s->terminal);
}

/* A shell that brings a running job into the foreground tells nobody. */
int terminal_wait_ms(const struct supervisor *s)
{
	const struct terminal *t = s->terminal;

	if (redraw_wait_ms(&t->redraw) >= 0)
		return redraw_wait_ms(&t->redraw);
	return t->here && t->pending ? FOREGROUND_MS : -1;
}

void terminal_turn(struct supervisor *s)
{
	struct terminal *t = s->terminal;
	struct termios2 now;
	int fd;

	if (t->here && t->pending)
		get_it_back(t);
	if (redraw_wait_ms(&t->redraw) < 0)
		return;
	fd = open_ours(t, &now);
	redraw_turn(&t->redraw, fd);
	util_close(&fd);
}

/* ---- the end ---- */

/* A program that ends by itself has put back what it takes for the shell's, or wants what it
 * has set to stay (stty). A program that is killed could not; where its output goes into another
 * program, that may be what has set up the terminal. */
static bool is_to_be_put_back(const struct terminal *t, const struct termios2 *now, bool killed)
{
	if (t->restarted && (t->set || (t->has_original && same_settings(now, &t->original))))
		return true;
	return killed && t->shown;
}

void terminal_end(struct supervisor *s, bool killed)
{
	struct terminal *t = s->terminal;
	struct termios2 now;
	int fd = t ? open_ours(t, &now) : -1;

	if (fd < 0)
		return;
	redraw_end(&t->redraw, fd);
	if (t->known && !same_settings(&now, &t->caller) && is_to_be_put_back(t, &now, killed))
		set_settings(fd, &t->caller);
	if (group_is_gone(tcgetpgrp(fd)))
		(void)tcsetpgrp(fd, getpgrp());
	close(fd);
}
