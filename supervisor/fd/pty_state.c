/*
 * The line discipline (drivers/tty/n_tty.c) stands between the two ends. Towards the slave it
 * has edited and cut into lines what the master wrote; towards the master the slave's output
 * is as it will be read. So what is put back must not be edited a second time: that is done
 * under settings of our own, with every special character but those that cut lines disabled,
 * and those quoted where they stand inside of a line.
 */
#include "supervisor/fd/pty_state.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <time.h>

#define SLAVE_MAJOR 136 /* UNIX98_PTY_SLAVE_MAJOR, and seven more (linux/major.h) */
#define PIECE       256u
#define INPUT_MAX   4095 /* N_TTY_BUF_SIZE less one */
#define START_NS    100000000ull
#define PATIENCE_NS 5000000000ull

/* Any that are not special otherwise. */
#define CHAR_EOF   4
#define CHAR_START 17
#define CHAR_STOP  19
#define CHAR_NEXT  22

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

static short poll_now(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, 0) < 0 ? 0 : p.revents;
}

bool pty_is_deserted(int master)
{
	return poll_now(master, POLLIN) & POLLHUP;
}

/* ---- settings ---- */

static int get_termios(int fd, struct termios2 *t, struct err *e)
{
	return ioctl(fd, TCGETS2, t) ? err_set(e, errno, "cannot read its settings") : 0;
}

static int set_termios(int fd, const struct termios2 *t, struct err *e)
{
	return ioctl(fd, TCSETS2, t) ? err_set(e, errno, "cannot change its settings") : 0;
}

/* No editing; the bytes of a line that is not complete can be read, too. */
static struct termios2 raw_termios(const struct termios2 *own)
{
	struct termios2 t = *own;

	t.c_iflag = 0;
	t.c_oflag = 0;
	t.c_lflag = 0;
	t.c_cc[VMIN] = 1;
	t.c_cc[VTIME] = 0;
	return t;
}

/* Lines are cut as with @own, and nothing else is done to them. */
static struct termios2 line_termios(const struct termios2 *own)
{
	struct termios2 t = raw_termios(own);

	t.c_iflag = IXON;
	t.c_lflag = ICANON | IEXTEN;
	memset(t.c_cc, 0, sizeof(t.c_cc));
	t.c_cc[VEOF] = CHAR_EOF;
	t.c_cc[VEOL] = own->c_cc[VEOL];
	t.c_cc[VEOL2] = own->c_cc[VEOL2];
	t.c_cc[VLNEXT] = CHAR_NEXT;
	t.c_cc[VSTART] = CHAR_START;
	t.c_cc[VSTOP] = CHAR_STOP;
	return t;
}

/* ---- taking out what is under way ---- */

struct pending {
	struct buf lines;  /* struct image_pty_line */
	struct buf input;  /* their bytes, towards the slave */
	struct buf output; /* towards the master */
};

static void pending_free(struct pending *p)
{
	buf_free(&p->lines);
	buf_free(&p->input);
	buf_free(&p->output);
}

static void add_line(struct pending *p, const void *data, size_t size, uint32_t end)
{
	struct image_pty_line line = {.size = size, .end = end};

	buf_push(&p->lines, struct image_pty_line, &line);
	buf_add(&p->input, data, size);
}

static uint32_t end_of_line(const struct termios2 *own, const char *data, size_t size)
{
	unsigned char last = size ? data[size - 1] : 0;

	if (size && (last == '\n' ||
			    (last && (last == own->c_cc[VEOL] || last == own->c_cc[VEOL2]))))
		return IMAGE_PTY_LINE_WHOLE;
	return IMAGE_PTY_LINE_EOF;
}

/* One read for each line; poll(2) waits for what the kernel has not yet worked off, where
 * there is nothing else to be read (n_tty_poll). */
static int take_lines(int slave, const struct termios2 *own, struct pending *p, struct err *e)
{
	char data[8192];

	while (poll_now(slave, POLLIN) & POLLIN) {
		ssize_t n = read(slave, data, sizeof(data));

		if (n < 0)
			return err_set(e, errno, "cannot read what was typed");
		add_line(p, data, n, end_of_line(own, data, n));
	}
	return 0;
}

static int take_rest(int slave, struct pending *p, struct err *e)
{
	char data[8192];
	int size;

	for (;;) {
		ssize_t n;

		(void)poll_now(slave, POLLIN); /* until all is worked off */
		if (ioctl(slave, FIONREAD, &size))
			return err_set(e, errno, "cannot ask what was typed");
		if (!size)
			return 0;
		n = read(slave, data, sizeof(data));
		if (n <= 0)
			return err_set(e, n ? errno : 0, "cannot read what was typed");
		add_line(p, data, n, IMAGE_PTY_LINE_OPEN);
	}
}

static int take_input(int slave, const struct termios2 *own, struct pending *p, struct err *e)
{
	struct termios2 raw = raw_termios(own), now = *own;

	/* Output that ^S has stopped would go on without it (n_tty_set_termios). */
	raw.c_iflag = own->c_iflag & IXON;
	if (own->c_lflag & ICANON) {
		if (take_lines(slave, own, p, e))
			return -1;
	} else {
		/* What is still to be worked off is treated as before. */
		now.c_cc[VMIN] = 1;
		now.c_cc[VTIME] = 0;
		if (set_termios(slave, &now, e) || take_rest(slave, p, e))
			return -1;
	}
	return set_termios(slave, &raw, e) || take_rest(slave, p, e) ? -1 : 0;
}

/* In packet mode every read begins with a byte that says what follows. */
static int take_output(int master, bool packets, struct buf *out, struct err *e)
{
	char data[8192];
	int size;

	while (poll_now(master, POLLIN) & POLLIN) {
		ssize_t n;

		if (ioctl(master, FIONREAD, &size))
			return err_set(e, errno, "cannot ask for its output");
		if (!size)
			return 0;
		n = read(master, data, sizeof(data));
		if (n <= 0 || (packets && data[0] != TIOCPKT_DATA))
			return err_set(e, n < 0 ? errno : 0, "cannot read its output");
		buf_add(out, data + packets, n - packets);
	}
	return 0;
}

/* ---- and putting it back ---- */

static void pause_shortly(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* The end may be one that waits: never more than it has room for. */
static int put(int fd, const void *data, size_t size, struct err *e)
{
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	const char *p = data;

	while (size) {
		struct pollfd room = {.fd = fd, .events = POLLOUT};
		ssize_t n = size < PIECE ? size : PIECE;

		if (clock_ns(CLOCK_MONOTONIC) > limit)
			return err_set(e, 0, "it takes no more bytes");
		if (poll(&room, 1, 100) <= 0 || !(room.revents & POLLOUT))
			continue;
		n = write(fd, p, n);
		if (n < 0 && errno != EAGAIN)
			return err_set(e, errno, "cannot put back what was in it");
		p += n > 0 ? n : 0;
		size -= n > 0 ? n : 0;
	}
	return 0;
}

static bool is_special(const struct termios2 *t, unsigned char c)
{
	return c == '\n' || c == CHAR_EOF || c == CHAR_NEXT || c == CHAR_START ||
	       c == CHAR_STOP || (c && (c == t->c_cc[VEOL] || c == t->c_cc[VEOL2]));
}

static int put_line(int master, const struct termios2 *t, const char *data,
	const struct image_pty_line *line, struct err *e)
{
	cleanup_buf struct buf typed = {0};

	for (uint32_t i = 0; i < line->size; i++) {
		bool ends = line->end == IMAGE_PTY_LINE_WHOLE && i + 1 == line->size;

		if (is_special(t, data[i]) && !ends)
			buf_add(&typed, (const char[1]){CHAR_NEXT}, 1);
		buf_add(&typed, &data[i], 1);
	}
	if (line->end == IMAGE_PTY_LINE_EOF)
		buf_add(&typed, (const char[1]){CHAR_EOF}, 1);
	return put(master, typed.data, typed.len, e);
}

static int await_writable(int slave, bool writable, struct err *e)
{
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

	while (!(poll_now(slave, POLLOUT) & POLLOUT) == writable) {
		if (clock_ns(CLOCK_MONOTONIC) > limit)
			return err_set(e, 0, "it does not work off what was put back");
		pause_shortly();
	}
	return 0;
}

/* That the kernel has worked off what the master wrote shows by nothing else while there are
 * lines to be read: the last byte stops the output, and it is let go again. */
static int await_lines(int master, int slave, struct err *e)
{
	return put(master, (const char[1]){CHAR_STOP}, 1, e) ||
			       await_writable(slave, false, e) ||
			       put(master, (const char[1]){CHAR_START}, 1, e) ||
			       await_writable(slave, true, e)
		       ? -1
		       : 0;
}

/* What does not fit into the line discipline waits before it, as it did. */
static int await_bytes(int slave, size_t size, struct err *e)
{
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	int want = size < INPUT_MAX ? size : INPUT_MAX, have;

	while (!ioctl(slave, FIONREAD, &have) && have < want) {
		if (clock_ns(CLOCK_MONOTONIC) > limit)
			return err_set(e, 0, "it does not work off what was put back");
		pause_shortly();
	}
	return 0;
}

static int put_input(int master, int slave, const struct termios2 *own, const struct pending *p,
	struct err *e)
{
	struct termios2 raw = raw_termios(own), lines = line_termios(own);
	const char *data = p->input.data;

	if (!p->lines.len)
		return 0;
	if (!(own->c_lflag & ICANON)) {
		if (set_termios(slave, &raw, e) || put(master, data, p->input.len, e))
			return -1;
		return await_bytes(slave, p->input.len, e);
	}
	if (set_termios(slave, &lines, e))
		return -1;
	for (size_t i = 0; i < buf_count(&p->lines, struct image_pty_line); i++) {
		const struct image_pty_line *line = buf_at(&p->lines, struct image_pty_line, i);

		if (put_line(master, &lines, data, line, e))
			return -1;
		data += line->size;
	}
	return await_lines(master, slave, e);
}

/* In packet mode the master is told of what we have done to the settings. */
static void clear_status(int master)
{
	char status;

	if (poll_now(master, POLLPRI) & POLLPRI)
		(void)!read(master, &status, 1);
}

static int put_back(int master, int slave, const struct termios2 *own, const struct pending *p,
	struct err *e)
{
	struct termios2 raw = raw_termios(own);
	int failed = put_input(master, slave, own, p, e);

	/* Between raw and line mode the kernel forgets where lines end: not by way of it. */
	if (!failed && p->output.len) {
		raw.c_lflag = own->c_lflag & ICANON;
		failed = set_termios(slave, &raw, e);
	}
	if (!failed && p->output.len)
		failed = put(slave, p->output.data, p->output.len, e);
	if (set_termios(slave, own, failed ? NULL : e))
		failed = -1;
	clear_status(master);
	return failed ? -1 : 0;
}

/* ---- all of it ---- */

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

/* Let the output go on that ^S or tcflow(3) has stopped: which of them shows by what helps. */
static int start_output(
	int master, int slave, const struct termios2 *own, uint32_t *how, struct err *e)
{
	struct termios2 lines = line_termios(own);
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + START_NS;

	if (set_termios(slave, &lines, e) || put(master, (const char[1]){CHAR_START}, 1, e))
		return -1;
	*how = IMAGE_PTY_STOPPED;
	while (!(poll_now(slave, POLLOUT) & POLLOUT) && clock_ns(CLOCK_MONOTONIC) < limit)
		pause_shortly();
	if (poll_now(slave, POLLOUT) & POLLOUT)
		return 0;
	*how = IMAGE_PTY_SUSPENDED;
	if (ioctl(slave, TCXONC, TCOON))
		return err_set(e, errno, "cannot let its output go on");
	return await_writable(slave, true, e);
}

static int stop_output(
	int master, int slave, const struct termios2 *own, uint32_t how, struct err *e)
{
	struct termios2 lines = line_termios(own);

	if (how & IMAGE_PTY_SUSPENDED)
		return ioctl(slave, TCXONC, TCOOFF)
			       ? err_set(e, errno, "cannot stop its output")
			       : 0;
	if (!(how & IMAGE_PTY_STOPPED))
		return 0;
	if (set_termios(slave, &lines, e) || put(master, (const char[1]){CHAR_STOP}, 1, e) ||
		await_writable(slave, false, e))
		return -1;
	clear_status(master);
	return set_termios(slave, own, e);
}

static int take(int master, int slave, const struct termios2 *own, bool packets,
	struct pending *p, uint32_t *stopped, struct err *e)
{
	if (take_input(slave, own, p, e))
		return -1;
	clear_status(master);
	if (take_output(master, packets, &p->output, e))
		return -1;
	/* There is room now: nothing else keeps it from being written to. */
	if (poll_now(slave, POLLOUT) & POLLOUT)
		return 0;
	if (start_output(master, slave, own, stopped, e))
		return -1;
	clear_status(master);
	return take_output(master, packets, &p->output, e);
}

static int save_pending(
	int master, int slave, struct image_pty *state, struct buf *bytes, struct err *e)
{
	bool packets = state->flags & IMAGE_PTY_PACKETS;
	uint32_t stopped = 0;
	struct pending p = {0};
	struct termios2 own;
	int failed;

	memcpy(&own, state->termios, sizeof(own));
	if (packets && poll_now(master, POLLPRI) & POLLPRI)
		return err_set(e, 0, "a status in packet mode is waiting to be read");
	failed = take(master, slave, &own, packets, &p, &stopped, e);
	failed |= put_back(master, slave, &own, &p, failed ? NULL : e);
	failed |= stop_output(master, slave, &own, stopped, failed ? NULL : e);
	state->flags |= stopped;
	state->line_count = buf_count(&p.lines, struct image_pty_line);
	state->input = p.input.len;
	state->output = p.output.len;
	buf_add(bytes, p.lines.data, p.lines.len);
	buf_add(bytes, p.input.data, p.input.len);
	buf_add(bytes, p.output.data, p.output.len);
	pending_free(&p);
	return failed ? -1 : 0;
}

static int set_lock(int master, bool locked)
{
	return ioctl(master, TIOCSPTLCK, &(int){locked});
}

int pty_save(int master, int slave, struct image_pty *state, struct buf *bytes, struct err *e)
{
	bool deserted = pty_is_deserted(master);
	cleanup_fd int own = -1;
	int failed;

	if (save_settings(master, slave, state, e))
		return -1;
	if (slave < 0 && !deserted)
		return 0; /* never opened: nothing was typed into it */
	state->flags |= IMAGE_PTY_OPENED;
	if (state->flags & IMAGE_PTY_LOCKED && set_lock(master, false))
		return err_set(e, errno, "cannot unlock it");
	if (state->flags & IMAGE_PTY_EXCLUSIVE)
		(void)ioctl(slave, TIOCNXCL);
	own = pty_open_slave(master, O_RDWR | O_NONBLOCK);
	failed = own < 0 ? err_set(e, errno, "cannot open its other end")
			 : save_pending(master, own, state, bytes, e);
	if (state->flags & IMAGE_PTY_EXCLUSIVE)
		(void)ioctl(slave, TIOCEXCL);
	if (state->flags & IMAGE_PTY_LOCKED)
		(void)set_lock(master, true);
	return failed;
}

uint64_t pty_bytes(const struct image_pty *state)
{
	return state->line_count * sizeof(struct image_pty_line) + (uint64_t)state->input +
	       state->output;
}

static int split(const struct image_pty *state, const struct buf *bytes, struct pending *p,
	struct err *e)
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
	struct pending p = {0};
	int failed = split(state, bytes, &p, e);

	if (!failed)
		failed = put_back(master, slave, own, &p, e) ||
			 stop_output(master, slave, own, state->flags, e);
	pending_free(&p);
	return failed ? -1 : 0;
}

int pty_load(int master, int slave, const struct image_pty *state, const struct buf *bytes,
	struct err *e)
{
	struct winsize size = {state->rows, state->columns, state->x_pixels, state->y_pixels};
	struct termios2 own;

	memcpy(&own, state->termios, sizeof(own));
	/* Pixels count as well, so zeros are set, too. */
	if (ioctl(master, TIOCSWINSZ, &size) || set_termios(master, &own, e))
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
