/*
 * A session inside the tree, on a pseudo-terminal of the tree: the controlling terminal, its
 * foreground group, ^C from the other end, /dev/tty, hanging up.
 */
#include <sys/ioctl.h>
#include <termios.h>

#include "tree.h"

static int master, slave = -1, dev_tty = -1;
static char name[64];
static pid_t leader, job, background, without;
static volatile sig_atomic_t interrupted, hung_up;

/* The leader's children report to it, and wait at a gate of its own. */
static int inner_gate[2], inner_report[2];

static void swap(int *a, int *b)
{
	for (int i = 0; i < 2; i++) {
		int x = a[i];

		a[i] = b[i];
		b[i] = x;
	}
}

static void turn_inside_out(void)
{
	swap(tree_gate, inner_gate);
	swap(tree_report, inner_report);
}

static void on_interrupt(int signal)
{
	interrupted++;
}

static void on_hangup(int signal)
{
	hung_up++;
}

static void await_flag(volatile sig_atomic_t *flag)
{
	for (int i = 0; i < 20000 && !*flag; i++)
		usleep(1000);
}

static void found_group(void)
{
	signal(SIGINT, on_interrupt);
	MUST(!setpgid(0, 0));
}

static void be_job(void)
{
	found_group();
	dev_tty = open("/dev/tty", O_RDWR);
	MUST(dev_tty >= 0);
	signal(SIGTTOU, SIG_IGN);
	MUST(!tcsetpgrp(dev_tty, getpid()));
	signal(SIGTTOU, SIG_DFL);
}

static void check_job(void)
{
	char line[16], path[64], target[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dev_tty);
	CHECK(readlink(path, target, sizeof(target) - 1) > 0 && !strcmp(target, "/dev/tty"),
		"descriptor of %s", target);
	CHECK(tcgetpgrp(dev_tty) == getpid(), "foreground group %d", tcgetpgrp(dev_tty));
	await_flag(&interrupted);
	CHECK(interrupted == 1, "^C came %d times", interrupted);
	CHECK(read(dev_tty, line, sizeof(line)) == 4 && !memcmp(line, "abc\n", 4),
		"typed line");
	CHECK(write(dev_tty, "seen", 4) == 4, "%s", strerror(errno));
}

static void check_background(void)
{
	struct termios t;

	CHECK(!interrupted, "^C in the background");
	CHECK(tcgetpgrp(slave) == job, "foreground group %d", tcgetpgrp(slave));
	/* Stopped by the terminal (SIGTTOU); the parent sees it. */
	MUST(!tcgetattr(slave, &t));
	tcsetattr(slave, TCSANOW, &t);
}

static void give_up(void)
{
	int fd = open("/dev/tty", O_RDWR);

	MUST(fd >= 0 && !ioctl(fd, TIOCNOTTY));
	close(fd);
}

static void check_given_up(void)
{
	CHECK(open("/dev/tty", O_RDWR) < 0 && errno == ENXIO, "%s", strerror(errno));
}

static void lead(void)
{
	leader = getpid();
	signal(SIGHUP, on_hangup);
	MUST(setsid() > 0);
	slave = open(name, O_RDWR);
	close(master);
	MUST(slave >= 0 && tcgetsid(slave) == leader);
	MUST(!pipe(inner_gate) && !pipe(inner_report));
	turn_inside_out();
	job = tree_child(be_job, check_job);
	tree_await(1);
	background = tree_child(found_group, check_background);
	without = tree_child(give_up, check_given_up);
	tree_await(2);
	turn_inside_out();
}

static void check_leader(void)
{
	struct winsize size = {0};
	int status = 0;

	CHECK(!ioctl(slave, TIOCGWINSZ, &size) && size.ws_row == 42, "%d rows", size.ws_row);
	turn_inside_out();
	CHECK(tcgetsid(slave) == getpid(), "session %d", tcgetsid(slave));
	tree_open(3);
	CHECK(waitpid(background, &status, WUNTRACED) == background && WIFSTOPPED(status) &&
			WSTOPSIG(status) == SIGTTOU,
		"status %x", status);
	kill(background, SIGKILL);
	tree_reap(background, SIGKILL);
	tree_reap(job, 0);
	tree_reap(without, 0);
	CHECK(tree_hear() == 'k' && tree_hear() == 'k', "the children");
	turn_inside_out();
	tree_tell('j');
	await_flag(&hung_up);
	CHECK(hung_up == 1, "hung up %d times", hung_up);
	CHECK(open("/dev/tty", O_RDWR) < 0 && errno == ENXIO, "%s", strerror(errno));
}

void victim_hurt(void)
{
	ioctl(master, TIOCSWINSZ, &(struct winsize){.ws_row = 1});
}

int main(void)
{
	char seen[64] = "";
	pid_t child;

	master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0)
		victim_skip("no pseudo-terminals");
	MUST(!grantpt(master) && !unlockpt(master) && !ptsname_r(master, name, sizeof(name)));
	MUST(!ioctl(master, TIOCSWINSZ, &(struct winsize){.ws_row = 42}));
	child = tree_child(lead, check_leader);
	tree_await(1);
	victim_ready();
	victim_wait();
	CHECK(write(master, "\003abc\n", 5) == 5, "%s", strerror(errno));
	tree_open(1);
	CHECK(tree_hear() == 'j', "the leader's children");
	CHECK(read(master, seen, sizeof(seen)) > 0, "%s", strerror(errno));
	CHECK(strstr(seen, "abc"), "\"%s\"", seen);
	close(master);
	CHECK(tree_hear() == 'k', "the leader");
	tree_reap(child, 0);
	return victim_done();
}
