/*
 * The line discipline (drivers/tty/n_tty.c) stands between the two ends. Towards the slave it
 * has edited and cut into lines what the master wrote; towards the master the slave's output
 * is as it will be read. So what is put back must not be edited a second time: that is done
 * under settings of our own, with every special character disabled but those for the ends of
 * lines, and those quoted where they stand inside of a line.
 *
 * No kernel interface reads or writes these queues, hence all this. Without it, what was typed
 * ahead would be lost, or each shell with a key pressed at the wrong moment be refused.
 */
#include "supervisor/fd_kinds/pty_pending.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "ckpt/image.h"

#define PIECE       256u
#define INPUT_MAX   4095          /* N_TTY_BUF_SIZE less one */
#define ROOM        (128u * 1024) /* each way: 64 KiB before the line discipline, 4 in it */
#define START_NS    100000000ull
#define PATIENCE_NS 5000000000ull

/* Any that are not special otherwise. */
#define CHAR_EOF   4
#define CHAR_START 17
#define CHAR_STOP  19
#define CHAR_NEXT  22

static short poll_now(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, 0) < 0 ? 0 : p.revents;
}

/* ---- settings ---- */

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

void pty_pending_free(struct pty_pending *p)
{
	buf_free(&p->lines);
	buf_free(&p->input);
	buf_free(&p->output);
}

/* While bytes are nowhere but in our memory, no more of it is asked for. */
void pty_pending_reserve(struct pty_pending *p)
{
	buf_reserve(&p->lines, ROOM * sizeof(struct image_pty_line));
	buf_reserve(&p->input, ROOM);
	buf_reserve(&p->output, ROOM);
}

static void add_line(struct pty_pending *p, const void *data, size_t size, uint32_t end)
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
static int take_lines(
	int slave, const struct termios2 *own, struct pty_pending *p, struct err *e)
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

static int take_rest(int slave, struct pty_pending *p, struct err *e)
{
	char data[8192];
	int size;

	for (;;) {
		ssize_t n;

		(void)poll_now(slave, POLLIN); /* until all is worked off */
		if (ioctl(slave, FIONREAD, &size))
			return err_set(e, errno, "cannot find out what was typed");
		if (!size)
			return 0;
		n = read(slave, data, sizeof(data));
		if (n <= 0)
			return err_set(e, n ? errno : 0, "cannot read what was typed");
		add_line(p, data, n, IMAGE_PTY_LINE_OPEN);
	}
}

static int take_input(
	int slave, const struct termios2 *own, struct pty_pending *p, struct err *e)
{
	struct termios2 raw = raw_termios(own), now = *own;

	/* Output that ^S has stopped would resume without it (n_tty_set_termios). */
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
			return err_set(e, errno, "cannot query its output");
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
	sleep_ns(100000);
}

/* The end may be blocking: never more is written than it has room for. */
static int write_pending(int fd, const void *data, size_t size, struct err *e)
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
	char typed[PIECE];
	size_t n = 0;

	for (uint32_t i = 0; i < line->size; i++) {
		bool ends = line->end == IMAGE_PTY_LINE_WHOLE && i + 1 == line->size;

		if (is_special(t, data[i]) && !ends)
			typed[n++] = CHAR_NEXT;
		typed[n++] = data[i];
		if (n < sizeof(typed) - 2)
			continue;
		if (write_pending(master, typed, n, e))
			return -1;
		n = 0;
	}
	if (line->end == IMAGE_PTY_LINE_EOF)
		typed[n++] = CHAR_EOF;
	return write_pending(master, typed, n, e);
}

static int await_writable(int slave, bool writable, struct err *e)
{
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

	while (!(poll_now(slave, POLLOUT) & POLLOUT) == writable) {
		if (clock_ns(CLOCK_MONOTONIC) > limit)
			return err_set(e, 0, "it does not process what was put back");
		pause_shortly();
	}
	return 0;
}

/* That the kernel has worked off what the master wrote shows by nothing else while there are
 * lines to be read: the last byte stops the output, and it is let go again. */
static int await_lines(int master, int slave, struct err *e)
{
	return write_pending(master, (const char[1]){CHAR_STOP}, 1, e) ||
			       await_writable(slave, false, e) ||
			       write_pending(master, (const char[1]){CHAR_START}, 1, e) ||
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
			return err_set(e, 0, "it does not process what was put back");
		pause_shortly();
	}
	return 0;
}

static int put_input(int master, int slave, const struct termios2 *own,
	const struct pty_pending *p, struct err *e)
{
	struct termios2 raw = raw_termios(own), lines = line_termios(own);
	const char *data = p->input.data;

	if (!p->lines.len)
		return 0;
	if (!(own->c_lflag & ICANON)) {
		if (set_termios(slave, &raw, e) || write_pending(master, data, p->input.len, e))
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

/* In packet mode the master is notified of what we have done to the settings. */
static void clear_status(int master)
{
	char status;

	if (poll_now(master, POLLPRI) & POLLPRI)
		(void)!read(master, &status, 1);
}

static int put_pending_back(int master, int slave, const struct termios2 *own,
	const struct pty_pending *p, struct err *e)
{
	struct termios2 raw = raw_termios(own);
	int failed = put_input(master, slave, own, p, e);

	/* Between raw and line mode the kernel forgets where lines end: not by way of it. */
	if (!failed && p->output.len) {
		raw.c_lflag = own->c_lflag & ICANON;
		failed = set_termios(slave, &raw, e);
	}
	if (!failed && p->output.len)
		failed = write_pending(slave, p->output.data, p->output.len, e);
	if (set_termios(slave, own, failed ? NULL : e))
		failed = -1;
	clear_status(master);
	return failed ? -1 : 0;
}

/* ---- all of it ---- */

/* Resume output that ^S or tcflow(3) has stopped: which of them shows by what helps. */
static int start_output(
	int master, int slave, const struct termios2 *own, uint32_t *how, struct err *e)
{
	struct termios2 lines = line_termios(own);
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + START_NS;

	if (set_termios(slave, &lines, e) ||
		write_pending(master, (const char[1]){CHAR_START}, 1, e))
		return -1;
	*how = IMAGE_PTY_STOPPED;
	while (!(poll_now(slave, POLLOUT) & POLLOUT) && clock_ns(CLOCK_MONOTONIC) < limit)
		pause_shortly();
	if (poll_now(slave, POLLOUT) & POLLOUT)
		return 0;
	*how = IMAGE_PTY_SUSPENDED;
	if (ioctl(slave, TCXONC, TCOON))
		return err_set(e, errno, "cannot resume its output");
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
	if (set_termios(slave, &lines, e) ||
		write_pending(master, (const char[1]){CHAR_STOP}, 1, e) ||
		await_writable(slave, false, e))
		return -1;
	clear_status(master);
	return set_termios(slave, own, e);
}

static int take_pending(int master, int slave, const struct termios2 *own, bool packets,
	struct pty_pending *p, uint32_t *stopped, struct err *e)
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

int pty_pending_look(int master, int slave, const struct termios2 *own, bool packets,
	struct pty_pending *p, uint32_t *stopped, struct err *e)
{
	int failed = take_pending(master, slave, own, packets, p, stopped, e);

	failed |= put_pending_back(master, slave, own, p, failed ? NULL : e);
	failed |= stop_output(master, slave, own, *stopped, failed ? NULL : e);
	return failed ? -1 : 0;
}

int pty_pending_put(int master, int slave, const struct termios2 *own,
	const struct pty_pending *p, uint32_t stopped, struct err *e)
{
	return put_pending_back(master, slave, own, p, e) ||
			       stop_output(master, slave, own, stopped, e)
		       ? -1
		       : 0;
}
