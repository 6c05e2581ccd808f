/*
 * Pseudo-terminals with both ends in one process: settings, window size, what is under way in
 * both directions and how it is cut into lines, packet mode, the lock, a deserted one, one
 * that was hung up.
 */
#include <sys/ioctl.h>
#include <termios.h>

#include "victim.h"

struct pair {
	int master, slave;
	char name[64];
};

static struct pair lines, raw, packets, deserted, hung, stopped, suspended, relocked;
static int locked;

static struct pair open_pair(void)
{
	struct pair p;

	p.master = posix_openpt(O_RDWR | O_NOCTTY);
	if (p.master < 0)
		victim_skip("no pseudo-terminals");
	MUST(!grantpt(p.master) && !unlockpt(p.master) &&
		!ptsname_r(p.master, p.name, sizeof(p.name)));
	p.slave = open(p.name, O_RDWR | O_NOCTTY);
	MUST(p.slave >= 0);
	return p;
}

static void set_flags(int fd, tcflag_t iflag, tcflag_t oflag, tcflag_t lflag)
{
	struct termios t;

	MUST(!tcgetattr(fd, &t));
	t.c_iflag = iflag;
	t.c_oflag = oflag;
	t.c_lflag = lflag;
	MUST(!tcsetattr(fd, TCSANOW, &t));
}

static void put(int fd, const char *text)
{
	MUST(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void expect(int fd, const char *text, const char *what)
{
	char data[512] = "";
	ssize_t n = read(fd, data, sizeof(data) - 1);

	CHECK(n == (ssize_t)strlen(text) && !memcmp(data, text, n), "%s: %zd bytes \"%s\"",
		what, n, data);
}

/* Until @count bytes can be read, as the kernel works them off in its own time. */
static void await(int fd, int count)
{
	uint64_t limit = victim_limit();
	int have = 0;

	while (!ioctl(fd, FIONREAD, &have) && have != count) {
		MUST(victim_now() < limit);
		usleep(500);
	}
}

static void prepare_lines(void)
{
	struct termios t;

	lines = open_pair();
	MUST(!tcgetattr(lines.slave, &t));
	t.c_cc[VEOL] = '!';
	t.c_cc[VEOL2] = '$';
	t.c_cc[VERASE] = '#';
	t.c_cflag = CS8 | CREAD | B57600;
	t.c_lflag = ICANON | ISIG | IEXTEN;
	MUST(!tcsetattr(lines.slave, TCSANOW, &t));
	MUST(!ioctl(lines.master, TIOCSWINSZ, &(struct winsize){33, 77, 5, 6}));
	/* A quoted end of file and erase, an empty line's end of file, and a start. */
	MUST(!fchmod(lines.slave, 0622) && (geteuid() || !fchown(lines.slave, 12, 13)));
	put(lines.master, "onx#e\ntwo!three$en\004\004q\026\004\026#\nnot y");
	put(lines.slave, "out\nput");
	await(lines.master, 8);
}

static void check_lines(void)
{
	struct winsize size;
	struct termios t;
	struct stat st;

	CHECK(!fstat(lines.slave, &st) && (st.st_mode & 07777) == 0622 &&
			(geteuid() || (st.st_uid == 12 && st.st_gid == 13)),
		"mode %o of %u, %u", st.st_mode, st.st_uid, st.st_gid);
	CHECK(!tcgetattr(lines.slave, &t) && t.c_cc[VEOL] == '!' && t.c_cc[VERASE] == '#' &&
			cfgetospeed(&t) == B57600 && t.c_lflag == (ICANON | ISIG | IEXTEN),
		"settings: %x %x", t.c_cflag, t.c_lflag);
	CHECK(!ioctl(lines.slave, TIOCGWINSZ, &size) && size.ws_row == 33 &&
			size.ws_col == 77 && size.ws_xpixel == 5 && size.ws_ypixel == 6,
		"window of %d x %d", size.ws_row, size.ws_col);
	expect(lines.slave, "one\n", "first line");
	expect(lines.slave, "two!", "line ended by VEOL");
	expect(lines.slave, "three$", "line ended by VEOL2");
	expect(lines.slave, "en", "line ended by VEOF");
	CHECK(read(lines.slave, &(char){0}, 1) == 0, "end of file");
	expect(lines.slave, "q\004#\n", "line with quoted characters");
	put(lines.master, "#Z\n");
	expect(lines.slave, "not Z\n", "line that was begun");
	expect(lines.master, "out\r\nput", "output");
	put(lines.slave, "\n");
	expect(lines.master, "\r\n", "more output");
}

static void prepare_raw(void)
{
	struct termios t;

	raw = open_pair();
	set_flags(raw.slave, 0, 0, 0);
	MUST(!tcgetattr(raw.slave, &t));
	t.c_cc[VMIN] = 20;
	t.c_cc[VTIME] = 0;
	MUST(!tcsetattr(raw.slave, TCSANOW, &t));
	put(raw.master, "\003\004\021\022\023\026\nab");
	await(raw.slave, 9);
	MUST(!ioctl(raw.slave, TIOCEXCL));
}

static void check_raw(void)
{
	int exclusive = 0;

	CHECK(!ioctl(raw.slave, TIOCGEXCL, &exclusive) && exclusive, "exclusive use");
	put(raw.master, "12345678901");
	expect(raw.slave, "\003\004\021\022\023\026\nab12345678901", "raw input");
}

static bool takes_output(int fd)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, NULL, &set, NULL, &(struct timeval){0}) == 1;
}

static void prepare_others(void)
{
	packets = open_pair();
	MUST(!ioctl(packets.master, TIOCPKT, &(int){1}));
	put(packets.slave, "packet");
	await(packets.master, 6);
	deserted = open_pair();
	put(deserted.slave, "last words");
	await(deserted.master, 10);
	set_flags(deserted.slave, IGNBRK, 0, NOFLSH);
	close(deserted.slave);
	hung = open_pair();
	close(hung.master);
	locked = posix_openpt(O_RDWR | O_NOCTTY);
	MUST(locked >= 0 && !ioctl(locked, TIOCSPTLCK, &(int){1}));
	set_flags(locked, IGNBRK, 0, NOFLSH);
	relocked = open_pair();
	MUST(!ioctl(relocked.master, TIOCSPTLCK, &(int){1}));
	stopped = open_pair();
	set_flags(stopped.slave, IXON, 0, ICANON);
	put(stopped.slave, "before");
	await(stopped.master, 6);
	put(stopped.master, "\023");
	for (int i = 0; i < 60000 && takes_output(stopped.slave); i++)
		usleep(1000);
	MUST(!takes_output(stopped.slave));
	suspended = open_pair();
	set_flags(suspended.slave, IXON, 0, ICANON);
	MUST(!tcflow(suspended.slave, TCOOFF));
}

static void check_others(void)
{
	struct termios t = {0};
	char data[64];
	int on = 0;
	ssize_t n;

	CHECK(!ioctl(packets.master, TIOCGPKT, &on) && on, "packet mode");
	n = read(packets.master, data, sizeof(data));
	CHECK(n == 7 && !data[0] && !memcmp(data + 1, "packet", 6), "packet of %zd bytes", n);
	expect(deserted.master, "last words", "a deserted terminal");
	CHECK(read(deserted.master, data, 1) == -1 && errno == EIO, "%s", strerror(errno));
	deserted.slave = open(deserted.name, O_RDWR | O_NOCTTY);
	CHECK(!tcgetattr(deserted.slave, &t) && t.c_iflag == IGNBRK && t.c_lflag == NOFLSH,
		"settings of a deserted terminal: %x, %x", t.c_iflag, t.c_lflag);
	CHECK(read(hung.slave, data, 1) == 0, "%s", strerror(errno));
	CHECK(write(hung.slave, data, 1) == -1 && errno == EIO, "%s", strerror(errno));
	CHECK(!ioctl(locked, TIOCGPTLCK, &on) && on, "the lock");
	CHECK(!ioctl(relocked.master, TIOCGPTLCK, &on) && on, "the lock of an open one");
	CHECK(!tcgetattr(locked, &t) && t.c_iflag == IGNBRK && t.c_lflag == NOFLSH,
		"settings of one that was never opened: %x, %x", t.c_iflag, t.c_lflag);
	CHECK(!takes_output(stopped.slave), "output resumes by itself");
	expect(stopped.master, "before", "output before it was stopped");
	put(stopped.master, "\021");
	for (int i = 0; i < 60000 && !takes_output(stopped.slave); i++)
		usleep(1000);
	CHECK(takes_output(stopped.slave), "^Q");
	/* What the program has stopped itself ^Q does not start, but tcflow(3). */
	CHECK(!takes_output(suspended.slave), "suspended output resumes by itself");
	put(suspended.master, "\021x\n");
	await(suspended.slave, 2);
	CHECK(!takes_output(suspended.slave), "suspended output resumes by ^Q");
	CHECK(!tcflow(suspended.slave, TCOON) && takes_output(suspended.slave), "TCOON");
}

void victim_hurt(void)
{
	ioctl(lines.master, TIOCSWINSZ, &(struct winsize){1, 2, 3, 4});
}

int main(void)
{
	char name[64];

	prepare_lines();
	prepare_raw();
	prepare_others();
	victim_ready();
	victim_wait();
	CHECK(!ttyname_r(lines.slave, name, sizeof(name)) && !strcmp(name, lines.name),
		"%s was %s", name, lines.name);
	check_lines();
	check_raw();
	check_others();
	return victim_done();
}
