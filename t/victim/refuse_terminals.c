/* Terminals that a checkpoint refuses: fd is the master, other the slave. */
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "refuse.h"

static void need_terminal(void)
{
	need(!openpty(&fd, &other, NULL, NULL, NULL), "no pseudo-terminals here");
}

static void terminal_external(void)
{
	struct termios t;

	need_terminal();
	MUST(!tcgetattr(other, &t));
	t.c_lflag |= EXTPROC;
	MUST(!tcsetattr(other, TCSANOW, &t));
}

static void terminal_locked(void)
{
	struct termios t;

	need_terminal();
	memset(&t, 0xff, sizeof(t));
	need(!ioctl(other, TIOCSLCKTRMIOS, &t), "only root can lock settings");
}

static void terminal_status(void)
{
	need_terminal();
	MUST(!ioctl(fd, TIOCPKT, &(int){1}) && !tcflush(other, TCIFLUSH));
}

static void still_status(void)
{
	char status;

	CHECK(read(fd, &status, 1) == 1 && status == TIOCPKT_FLUSHREAD, "another status");
}

static void packet_status(void)
{
	need_terminal();
	MUST(!ioctl(fd, TIOCPKT, &(int){1}) && !tcflow(other, TCOOFF));
}

static void still_packet_status(void)
{
	char status = 0;

	CHECK(read(fd, &status, 1) == 1 && status == TIOCPKT_STOP, "status %x", status);
}

/* A virtual console that has controlled a session of the program's own, and is open as /dev/tty only. */
static void terminal_console(void)
{
	int console;

	MUST(setsid() >= 0 || getsid(0) == getpid());
	console = open("/dev/tty9", O_RDWR);
	need(console >= 0, "no virtual console can be opened");
	fd = open("/dev/tty", O_RDWR);
	need(fd >= 0, "a virtual console cannot be a controlling terminal here");
	close(console);
	signal(SIGHUP, SIG_IGN);
	MUST(!ioctl(fd, TIOCNOTTY));
}

static const struct kind kinds[] = {
	{"terminal-external", terminal_external, nothing, 'd'},
	{"terminal-locked", terminal_locked, nothing, 'd'},
	{"terminal-status", terminal_status, still_status, 'd'},
	{"packet-status", packet_status, still_packet_status, 'd'},
	{"terminal-console", terminal_console, nothing, 'd'},
};

int main(int argc, char **argv)
{
	return refuse_main(kinds, sizeof(kinds) / sizeof(kinds[0]), argv[1]);
}
