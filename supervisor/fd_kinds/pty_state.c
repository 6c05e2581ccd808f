/*
 * pty_state.c - numbers of terminals, then saving one, then loading it.
 */
#include "supervisor/fd_kinds/pty_state.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "supervisor/fd/surviving_helper.h"
#include "supervisor/fd_kinds/pty_pending.h"

#define SLAVE_MAJOR 136 /* UNIX98_PTY_SLAVE_MAJOR, and seven more (linux/major.h) */

_Static_assert(sizeof(struct termios2) == sizeof(((struct image_pty *)0)->termios), "termios2");

int pty_index(uint64_t rdev)
{
	unsigned n = major(rdev);

	return n >= SLAVE_MAJOR && n < SLAVE_MAJOR + 8
		       ? (int)((n - SLAVE_MAJOR) << 20 | minor(rdev))
		       : -1;
}

int pty_device(int fd, uint64_t *rdev)
{
	unsigned dev;

	/* As new_encode_dev() makes it. */
	if (ioctl(fd, TIOCGDEV, &dev))
		return -1;
	*rdev = makedev((dev & 0xfff00) >> 8, (dev & 0xff) | ((dev >> 12) & 0xfff00));
	return 0;
}

int pty_index_of_master(int fd)
{
	unsigned index;

	return ioctl(fd, TIOCGPTN, &index) ? -1 : (int)index;
}

int pty_open_slave(int master, int flags)
{
	/* Not O_CLOEXEC: the kernel would keep it in the flags of the file itself, and show it
	 * in fdinfo for every descriptor of it (ptm_open_peer). */
	int fd = ioctl(master, TIOCGPTPEER, flags | O_NOCTTY);

	if (fd >= 0)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* cannot fail */
	return fd;
}

/* Whether the slave was opened once and has been closed by all. */
static bool pty_is_deserted(int master)
{
	struct pollfd p = {.fd = master, .events = POLLIN};

	return poll(&p, 1, 0) > 0 && p.revents & POLLHUP;
}

/* ---- saving ---- */

static int get_termios(int fd, struct termios2 *t, struct err *e)
{
	return ioctl(fd, TCGETS2, t) ? err_set(e, errno, "cannot read its settings") : 0;
}

static int get_flag(int fd, unsigned long request, uint32_t flag, uint32_t *flags)
{
	int on = 0;

	if (ioctl(fd, request, &on))
		return -1;
	*flags |= on ? flag : 0;
	return 0;
}

static int save_settings(int master, int slave, struct image_pty *state, struct err *e)
{
	struct termios2 locked = {0}, own;
	struct winsize size;
	int discipline;

	if (get_termios(master, &own, e))
		return -1;
	memcpy(state->termios, &own, sizeof(own));
	if (get_flag(master, TIOCGPTLCK, IMAGE_PTY_LOCKED, &state->flags) ||
		get_flag(master, TIOCGPKT, IMAGE_PTY_PACKETS, &state->flags) ||
		ioctl(master, TIOCGWINSZ, &size) || ioctl(master, TIOCGETD, &discipline))
		return err_set(e, errno, "cannot read its settings");
	if (!discipline && slave >= 0 && ioctl(slave, TIOCGETD, &discipline))
		return err_set(e, errno, "cannot read its settings");
	if (discipline)
		return err_set(e, 0, "its line discipline (%d) is not supported", discipline);
	if (slave >= 0 && get_flag(slave, TIOCGEXCL, IMAGE_PTY_EXCLUSIVE, &state->flags))
		return err_set(e, errno, "cannot read its settings");
	if (own.c_lflag & EXTPROC)
		return err_set(e, 0, "external processing (EXTPROC) is not supported");
	/* A struct termios, the shorter of the two. */
	if (!ioctl(master, TIOCGLCKTRMIOS, &locked) &&
		(locked.c_iflag | locked.c_oflag | locked.c_cflag | locked.c_lflag))
		return err_set(e, 0, "locked settings (TIOCSLCKTRMIOS) are not supported");
	state->rows = size.ws_row;
	state->columns = size.ws_col;
	state->x_pixels = size.ws_xpixel;
	state->y_pixels = size.ws_ypixel;
	return 0;
}

static bool has_waiting_status(int master)
{
	struct pollfd p = {.fd = master, .events = POLLPRI};

	return poll(&p, 1, 0) > 0 && p.revents & POLLPRI;
}

static int set_lock(int master, bool locked)
{
	return ioctl(master, TIOCSPTLCK, &(int){locked});
}

/* One look at a terminal, by a process that outlives us. */
struct look {
	int master, slave;
	struct image_pty *state;
	struct pty_pending pending;
	struct err *e;
};

static int look_inside(struct look *l)
{
	cleanup_fd int own = pty_open_slave(l->master, O_RDWR | O_NONBLOCK);
	struct termios2 settings;
	uint32_t stopped = 0;
	int failed;

	if (own < 0)
		return err_set(l->e, errno, "cannot open its other end");
	memcpy(&settings, l->state->termios, sizeof(settings));
	failed = pty_pending_look(l->master, own, &settings,
		l->state->flags & IMAGE_PTY_PACKETS, &l->pending, &stopped, l->e);
	l->state->flags |= stopped;
	return failed;
}

static int look_at_pty(void *arg)
{
	struct look *l = arg;
	int failed;

	if (l->state->flags & IMAGE_PTY_LOCKED && set_lock(l->master, false))
		return err_set(l->e, errno, "cannot unlock it");
	if (l->state->flags & IMAGE_PTY_EXCLUSIVE)
		(void)ioctl(l->slave, TIOCNXCL);
	failed = look_inside(l);
	if (l->state->flags & IMAGE_PTY_EXCLUSIVE)
		(void)ioctl(l->slave, TIOCEXCL);
	if (l->state->flags & IMAGE_PTY_LOCKED)
		(void)set_lock(l->master, true);
	return failed;
}

int pty_save(int master, int slave, struct image_pty *state, struct buf *bytes, struct err *e)
{
	struct look l = {.master = master, .slave = slave, .state = state, .e = e};
	struct pty_pending *p = &l.pending;
	bool deserted = pty_is_deserted(master);
	int failed;

	if (save_settings(master, slave, state, e))
		return -1;
	if (slave < 0 && !deserted)
		return 0; /* never opened: nothing was typed into it */
	state->flags |= IMAGE_PTY_OPENED;
	if (state->flags & IMAGE_PTY_PACKETS && has_waiting_status(master))
		return err_set(e, 0, "a status in packet mode is waiting to be read");
	pty_pending_reserve(p);
	failed = run_in_surviving_helper(look_at_pty, &l, e);
	state->line_count = buf_count(&p->lines, struct image_pty_line);
	state->input = p->input.len;
	state->output = p->output.len;
	buf_add(bytes, p->lines.data, p->lines.len);
	buf_add(bytes, p->input.data, p->input.len);
	buf_add(bytes, p->output.data, p->output.len);
	pty_pending_free(p);
	return failed;
}

/* ---- restart ---- */

/* The size of what follows @state in the image. */
static uint64_t pty_bytes(const struct image_pty *state)
{
	return state->line_count * sizeof(struct image_pty_line) + (uint64_t)state->input +
	       state->output;
}

static int split_pending(const struct image_pty *state, const struct buf *bytes,
	struct pty_pending *p, struct err *e)
{
	uint64_t lines = state->line_count * sizeof(struct image_pty_line), sum = 0;
	const char *data = bytes->data;

	if (bytes->len != pty_bytes(state))
		return err_set(e, 0, "the image is damaged: bytes in a terminal");
	buf_add(&p->lines, data, lines);
	buf_add(&p->input, data + lines, state->input);
	buf_add(&p->output, data + lines + state->input, state->output);
	for (size_t i = 0; i < state->line_count; i++)
		sum += buf_at(&p->lines, struct image_pty_line, i)->size;
	return sum == state->input ? 0
				   : err_set(e, 0, "the image is damaged: lines in a terminal");
}

static int load_pending(int master, int slave, const struct image_pty *state,
	const struct termios2 *own, const struct buf *bytes, struct err *e)
{
	struct pty_pending p = {0};
	int failed = split_pending(state, bytes, &p, e);

	if (!failed)
		failed = pty_pending_put(master, slave, own, &p, state->flags, e);
	pty_pending_free(&p);
	return failed ? -1 : 0;
}

int pty_load(int master, int slave, const struct image_pty *state, const struct buf *bytes,
	struct err *e)
{
	struct winsize size = {state->rows, state->columns, state->x_pixels, state->y_pixels};
	struct termios2 own;

	memcpy(&own, state->termios, sizeof(own));
	/* Pixels count as well, so zeros are set, too. */
	if (ioctl(master, TIOCSWINSZ, &size) || ioctl(master, TCSETS2, &own))
		return err_set(e, errno, "cannot set up a terminal");
	if (slave >= 0 && load_pending(master, slave, state, &own, bytes, e))
		return -1;
	if (slave >= 0 && state->flags & IMAGE_PTY_EXCLUSIVE && ioctl(slave, TIOCEXCL))
		return err_set(e, errno, "cannot make a terminal exclusive");
	if (state->flags & IMAGE_PTY_PACKETS && ioctl(master, TIOCPKT, &(int){1}))
		return err_set(e, errno, "cannot set a terminal to packet mode");
	if (set_lock(master, state->flags & IMAGE_PTY_LOCKED))
		return err_set(e, errno, "cannot lock a terminal");
	return 0;
}
