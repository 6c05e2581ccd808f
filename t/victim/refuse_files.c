/* Descriptors that a checkpoint refuses, other than sockets, terminals and rings. */
#include <mqueue.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "refuse.h"

static void external_pipe(void)
{
	struct stat st;

	fd = 9; /* from the test script */
	need(!fstat(fd, &st) && S_ISFIFO(st.st_mode), "no pipe at descriptor 9");
}

/* Bytes that were in it before packets were wanted. */
static void packets_and_bytes(void)
{
	int ends[2];

	MUST(!pipe(ends) && write(ends[1], "bytes", 5) == 5);
	MUST(!fcntl(ends[1], F_SETFL, O_DIRECT) && write(ends[1], "packet", 6) == 6);
	fd = ends[1];
	other = ends[0];
}

static void still_packets(void)
{
	char text[20];

	CHECK(read(other, text, 3) == 3 && read(other, text, 20) == 8 &&
			!memcmp(text, "espacket", 8),
		"the pipe has changed");
}

/* Its other name is in a place that nobody would look for it. */
static void lost_name(void)
{
	fd = open("name", O_RDWR | O_CREAT, 0600);
	MUST(fd >= 0 && !mkdir("elsewhere", 0700) && !link("name", "elsewhere/other") &&
		!unlink("name"));
}

/* What it watches is not ready for anything, and cannot be made so at a restart. */
static void one_shot(void)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT};
	char events[4096];

	other = fanotify_init(FAN_CLASS_NOTIF | 0x200 /* FAN_REPORT_FID */, O_RDONLY);
	MUST(!mkdir("marked", 0700));
	need(other >= 0 && !fanotify_mark(other, FAN_MARK_ADD, FAN_CREATE | FAN_ONDIR, AT_FDCWD,
				   "marked"),
		"no fanotify");
	MUST(!mkdir("marked/1", 0700) && (fd = epoll_create1(0)) >= 0);
	MUST(!epoll_ctl(fd, EPOLL_CTL_ADD, other, &e) && epoll_wait(fd, &e, 1, 0) == 1);
	MUST(read(other, events, sizeof(events)) > 0);
}

static void still_fired(void)
{
	struct epoll_event e;

	CHECK(!mkdir("marked/2", 0700), "mkdir: %m");
	CHECK(epoll_wait(fd, &e, 1, 0) == 0, "it fires again");
}

static void perf_event(void)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_TASK_CLOCK};

	fd = syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
	need(fd >= 0, "no perf events here");
}

static void bpf_map(void)
{
	/* BPF_MAP_CREATE of an array: type, key size, value size, entries */
	uint32_t attr[16] = {2, 4, 4, 1};

	fd = syscall(SYS_bpf, 0, attr, sizeof(attr));
	need(fd >= 0, "no BPF here");
}

static void name_space(void)
{
	char path[64], c;
	int ends[2];

	MUST(!pipe(ends) && (child = fork()) >= 0);
	if (!child) {
		/* CLONE_NEWUSER | CLONE_NEWNET */
		(void)!write(ends[1], syscall(SYS_unshare, 0x50000000) ? "-" : "+", 1);
		pause();
	}
	MUST(read(ends[0], &c, 1) == 1);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", child);
	fd = open(path, O_RDONLY);
	MUST(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	need(fd >= 0 && c == '+', "no network namespaces here");
}

static void notify(void)
{
	MUST(!mkdir("quiet", 0700));
	fd = open("quiet", O_RDONLY | O_DIRECTORY);
	need(!fcntl(fd, F_NOTIFY, DN_CREATE | DN_MULTISHOT), "no F_NOTIFY here");
}

/* Another open(2) wants to write to it. */
static void broken_lease(void)
{
	int writer;

	MUST(signal(SIGIO, SIG_IGN) != SIG_ERR);
	MUST((writer = open("leased", O_WRONLY | O_CREAT, 0600)) >= 0 && !close(writer));
	MUST((fd = open("leased", O_RDONLY)) >= 0);
	need(!fcntl(fd, F_SETLEASE, F_RDLCK), "no leases here");
	MUST(open("leased", O_WRONLY | O_NONBLOCK) < 0 && errno == EWOULDBLOCK);
}

/* A restart would have the file open a second time, to map it. */
static void mapped_lease(void)
{
	MUST((fd = open("leased", O_RDWR | O_CREAT, 0600)) >= 0 && !ftruncate(fd, 4096));
	need(!fcntl(fd, F_SETLEASE, F_WRLCK), "no leases here");
	MUST(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
}

static void pidfd_outside(void)
{
	fd = syscall(SYS_pidfd_open, 1, 0);
	need(fd >= 0, "no pidfd of process 1 here");
}

/* The supervisor. */
static void owner_outside(void)
{
	int ends[2];

	MUST(!pipe(ends) && !fcntl(ends[0], F_SETOWN, getppid()));
	fd = ends[0];
}

static void file_of_outside(void)
{
	fd = open("/proc/1/stat", O_RDONLY);
	need(fd >= 0, "files of other processes cannot be opened here");
}

/* Its other name is in another directory. */
static void fifo_elsewhere(void)
{
	MUST(!mkdir("other", 0700) && !mkfifo("here", 0600) && !link("here", "other/there"));
	fd = open("here", O_RDWR);
	MUST(fd >= 0 && !unlink("here"));
}

static void *leave_table(void *arg)
{
	struct epoll_event event = {.events = EPOLLIN};
	sigset_t set;
	int signals;

	MUST(!unshare(CLONE_FILES) && !sigemptyset(&set) && !sigaddset(&set, SIGUSR2));
	fd = epoll_create1(EPOLL_CLOEXEC);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	MUST(fd >= 0 && signals >= 0 && !epoll_ctl(fd, EPOLL_CTL_ADD, signals, &event));
	*(volatile bool *)arg = true;
	for (;;)
		pause();
	return NULL;
}

/* A restart sets its watches in another process, whose signals it would report. */
static void epoll_of_thread(void)
{
	static volatile bool done;

	victim_thread(leave_table, (void *)&done);
	while (!done)
		usleep(100);
	/* The process does not have it. */
	other = fd;
	fd = -1;
}

/* Mounts can be waited for; but their file is opened again only at the very end. */
static void epoll_mounts(void)
{
	struct epoll_event event = {.events = EPOLLERR};
	int mounts = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);

	fd = epoll_create1(EPOLL_CLOEXEC);
	MUST(mounts >= 0 && fd >= 0 && !epoll_ctl(fd, EPOLL_CTL_ADD, mounts, &event));
}

static void fanotify_events(void)
{
	fd = fanotify_init(FAN_CLASS_NOTIF | 0x200 /* FAN_REPORT_FID */, O_RDONLY);
	need(fd >= 0 && !fanotify_mark(fd, FAN_MARK_ADD, FAN_CREATE | FAN_ONDIR, AT_FDCWD, "."),
		"no fanotify");
	MUST(!mkdir("made", 0700));
}

static void fanotify_permissions(void)
{
	fd = fanotify_init(FAN_CLASS_CONTENT, O_RDONLY);
	need(fd >= 0, "no fanotify");
}

static void message_queue(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
	char name[32];

	snprintf(name, sizeof(name), "/trecr-test-%d", getpid());
	fd = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
	need(fd >= 0, "no POSIX message queues");
	mq_unlink(name);
	MUST(!mq_notify(fd, &event));
}

/* A pidfd, which fd watches, has changed its number. */
static void epoll_moved(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	int pidfd;

	child = fork();
	if (!child)
		for (;;)
			pause();
	pidfd = syscall(SYS_pidfd_open, child, 0);
	need(pidfd >= 0, "no pidfds");
	fd = epoll_create1(0);
	MUST(!epoll_ctl(fd, EPOLL_CTL_ADD, pidfd, &e));
	other = dup(pidfd);
	MUST(other >= 0 && !close(pidfd));
}

static void still_watches(void)
{
	struct epoll_event e;

	CHECK(!kill(child, SIGKILL) && epoll_wait(fd, &e, 1, 5000) == 1, "the watch");
	CHECK(waitpid(child, NULL, 0) == child, "waitpid: %m");
}

/* Another open(2) wants to open the file. */
static void broken_write_lease(void)
{
	signal(SIGIO, SIG_IGN);
	fd = open("leased", O_RDWR | O_CREAT, 0600);
	need(fd >= 0 && !fcntl(fd, F_SETLEASE, F_WRLCK), "no leases here");
	MUST(open("leased", O_RDONLY | O_NONBLOCK) < 0 && errno == EWOULDBLOCK);
}

static void landlock_rules(void)
{
	const struct landlock_ruleset_attr rules = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK,
	};

	fd = syscall(444 /* landlock_create_ruleset */, &rules, sizeof(rules), 0);
	need(fd >= 0, "no Landlock here");
}

static void mount_context(void)
{
	fd = syscall(430 /* fsopen */, "tmpfs", 0);
	need(fd >= 0, "no file system contexts here");
}

/* A file system that nobody has mounted, and a file on it. */
static void detached_mount(void)
{
	int context = syscall(430 /* fsopen */, "tmpfs", 0);

	need(context >= 0, "no file system contexts here");
	MUST(!syscall(431 /* fsconfig */, context, 6 /* FSCONFIG_CMD_CREATE */, NULL, NULL, 0));
	fd = syscall(432 /* fsmount */, context, 0, 0);
	need(fd >= 0, "no mount that is attached nowhere");
	MUST(!close(context));
}

static void detached_file(void)
{
	int file;

	detached_mount();
	file = openat(fd, "file", O_RDWR | O_CREAT, 0600);
	MUST(file >= 0 && !close(fd));
	fd = file;
}

static void detached_directory(void)
{
	int directory;

	detached_mount();
	directory = openat(fd, ".", O_RDONLY | O_DIRECTORY);
	MUST(directory >= 0 && !close(fd));
	fd = directory;
}

static void seccomp_listener(void)
{
	struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	struct sock_fprog program = {1, &allow};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		&program);
	need(fd >= 0, "no seccomp listeners here");
}

static const struct kind kinds[] = {
	{"pipe", external_pipe, nothing, 'd'},
	{"packets-and-bytes", packets_and_bytes, still_packets, 'd'},
	{"lost-name", lost_name, nothing, 'd'},
	{"one-shot", one_shot, still_fired, 'd'},
	{"perf-event", perf_event, nothing, 'd'},
	{"landlock-rules", landlock_rules, nothing, 'd'},
	{"mount-context", mount_context, nothing, 'd'},
	{"detached-mount", detached_mount, nothing, 'd'},
	{"detached-file", detached_file, nothing, 'd'},
	{"detached-directory", detached_directory, nothing, 'd'},
	{"seccomp-listener", seccomp_listener, nothing, '-'},
	{"bpf", bpf_map, nothing, 'd'},
	{"name-space", name_space, nothing, 'd'},
	{"notify", notify, nothing, 'd'},
	{"broken-lease", broken_lease, nothing, 'd'},
	{"mapped-lease", mapped_lease, nothing, 'd'},
	{"pidfd-outside", pidfd_outside, nothing, 'd'},
	{"foreign-owner", owner_outside, nothing, 'd'},
	{"file-of-outside", file_of_outside, nothing, 'd'},
	{"fifo-elsewhere", fifo_elsewhere, nothing, 'd'},
	{"fanotify", fanotify_events, nothing, 'd'},
	{"fanotify-permissions", fanotify_permissions, nothing, 'd'},
	{"epoll-of-thread", epoll_of_thread, nothing, '-'},
	{"epoll-mounts", epoll_mounts, nothing, 'd'},
	{"mqueue", message_queue, nothing, 'd'},
	{"epoll-moved", epoll_moved, still_watches, 'd'},
	{"broken-write-lease", broken_write_lease, nothing, 'd'},
};

int main(int argc, char **argv)
{
	return refuse_main(kinds, sizeof(kinds) / sizeof(kinds[0]), argv[1]);
}
