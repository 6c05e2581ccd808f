/*
 * One-shot watches that have fired, on files of many kinds that are not ready for anything:
 * they report nothing, not even an end, before they are set again.
 */
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "victim.h"

static int ep, inner, inner_pipe[2], reader[2], writer[2], stream[2], tcp, local, timer,
	signals, notify;
static struct sockaddr_in tcp_name = {.sin_family = AF_INET};
static struct sockaddr_un local_name = {.sun_family = AF_UNIX, .sun_path = "\0fired"};
static socklen_t tcp_size = sizeof(tcp_name);

static void watch(int how, int fd, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.u64 = fd};

	CHECK(!epoll_ctl(ep, how, fd, &e), "epoll_ctl %d: %m", fd);
}

static void expect_nothing(const char *what)
{
	struct epoll_event e = {0};

	CHECK(!epoll_wait(ep, &e, 1, 0), "%s: an event nobody waits for: %x of %d", what,
		e.events, (int)e.data.u64);
}

static void expect(int fd)
{
	struct epoll_event e = {0};

	CHECK(epoll_wait(ep, &e, 1, 5000) == 1 && (int)e.data.u64 == fd, "%x of %d, not of %d",
		e.events, (int)e.data.u64, fd);
}

/* Each has its event now, and has it taken back. */

static void with_client(
	int listening, const void *name, socklen_t size, void (*then)(int), int fd)
{
	int client = socket(*(const sa_family_t *)name, SOCK_STREAM, 0), server;

	CHECK(!connect(client, name, size), "connect: %m");
	then(fd);
	server = accept(listening, NULL, NULL);
	CHECK(server >= 0, "accept: %m");
	close(server);
	close(client);
}

static void with_signal(void (*then)(int))
{
	struct signalfd_siginfo info;

	kill(getpid(), SIGUSR2);
	then(signals);
	CHECK(read(signals, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR2,
		"signalfd: %m");
}

static void with_timer(void (*then)(int))
{
	struct itimerspec soon = {.it_value = {.tv_nsec = 1}}, late = {.it_value = {3600, 0}};
	uint64_t ticks;

	CHECK(!timerfd_settime(timer, 0, &soon, NULL), "timerfd: %m");
	/* Until it is there. */
	CHECK(read(timer, &ticks, sizeof(ticks)) == sizeof(ticks) && ticks == 1, "timerfd: %m");
	CHECK(!timerfd_settime(timer, TFD_TIMER_ABSTIME, &soon, NULL), "timerfd: %m");
	then(timer);
	CHECK(read(timer, &ticks, sizeof(ticks)) == sizeof(ticks), "timerfd: %m");
	CHECK(!timerfd_settime(timer, 0, &late, NULL), "timerfd: %m");
}

static void with_name(void (*then)(int))
{
	char events[4096];

	close(open("named", O_CREAT | O_WRONLY, 0600));
	unlink("named");
	then(notify);
	CHECK(read(notify, events, sizeof(events)) > 0, "inotify: %m");
}

static void with_byte(int to, int from, int fd, void (*then)(int))
{
	char c;

	CHECK(write(to, "x", 1) == 1, "write: %m");
	then(fd);
	CHECK(read(from, &c, 1) == 1, "read: %m");
}

static void with_room(void (*then)(int))
{
	char page[4096];

	CHECK(read(writer[0], page, sizeof(page)) == sizeof(page), "read: %m");
	then(writer[1]);
	CHECK(write(writer[1], page, sizeof(page)) == sizeof(page), "write: %m");
}

static void each(void (*then)(int))
{
	with_client(tcp, &tcp_name, tcp_size, then, tcp);
	with_client(local, &local_name, sizeof(local_name), then, local);
	with_byte(reader[1], reader[0], reader[0], then);
	with_byte(stream[1], stream[0], stream[0], then);
	with_byte(inner_pipe[1], inner_pipe[0], inner, then);
	with_room(then);
	with_signal(then);
	with_timer(then);
	with_name(then);
}

/* ---- what is done then ---- */

static void fire(int fd)
{
	watch(EPOLL_CTL_ADD, fd, EPOLLIN | (fd == writer[1] ? EPOLLOUT : 0) | EPOLLONESHOT);
	expect(fd);
}

static void see_nothing(int fd)
{
	expect_nothing("fired");
}

static void ask_again(int fd)
{
	watch(EPOLL_CTL_MOD, fd, EPOLLIN | (fd == writer[1] ? EPOLLOUT : 0) | EPOLLONESHOT);
	expect(fd);
	expect_nothing("fired again");
}

/* ---- */

static void make_listening(void)
{
	tcp_name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	tcp = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!bind(tcp, (void *)&tcp_name, sizeof(tcp_name)) && !listen(tcp, 5) &&
		!getsockname(tcp, (void *)&tcp_name, &tcp_size));
	snprintf(local_name.sun_path + 1, 40, "fired-%d", getpid());
	local = socket(AF_UNIX, SOCK_STREAM, 0);
	MUST(!bind(local, (void *)&local_name, sizeof(local_name)) && !listen(local, 5));
}

/* Neither end of it can send or has anything to read. */
static void fill(int fd)
{
	static char much[4096];

	while (send(fd, much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	MUST(errno == EAGAIN);
}

static void make_others(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	struct itimerspec late = {.it_value = {3600, 0}};
	sigset_t set;

	MUST(!pipe(reader) && !pipe(writer) && !pipe(inner_pipe));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	fill(stream[0]);
	MUST(!fcntl(writer[1], F_SETFL, O_NONBLOCK));
	while (write(writer[1], &e, 1) > 0)
		;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	MUST(!sigprocmask(SIG_BLOCK, &set, NULL));
	MUST((signals = signalfd(-1, &set, 0)) >= 0);
	MUST((timer = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
	MUST(!timerfd_settime(timer, 0, &late, NULL));
	MUST((notify = inotify_init()) >= 0 && inotify_add_watch(notify, ".", IN_CREATE) == 1);
	MUST((inner = epoll_create1(0)) >= 0 &&
		!epoll_ctl(inner, EPOLL_CTL_ADD, inner_pipe[0], &e));
}

void victim_hurt(void)
{
	watch(EPOLL_CTL_MOD, tcp, EPOLLIN | EPOLLONESHOT);
}

int main(void)
{
	MUST((ep = epoll_create1(0)) >= 0);
	make_listening();
	make_others();
	each(fire);
	each(see_nothing);
	victim_ready();
	victim_wait();
	expect_nothing("at first");
	each(see_nothing);
	each(ask_again);
	CHECK(inotify_add_watch(notify, "/", IN_CREATE) == 2, "the next number of inotify");
	return victim_done();
}
