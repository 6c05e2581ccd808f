/* What cannot be saved is refused, with the descriptor and the reason named. */
#include <mqueue.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "t/unit/fd_cycle.h"

static void setup_socket(void)
{
	put_at(15, socket(AF_NETLINK, SOCK_RAW, NETLINK_FIB_LOOKUP));
}

static void setup_userfaultfd(void)
{
	put_at(15, syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */));
}

static void setup_proc(void)
{
	put_at(15, open("/proc/self/maps", O_RDONLY));
}

static void setup_proc_dir(void)
{
	put_at(15, open("/proc/self", O_RDONLY | O_DIRECTORY));
}

static void setup_path(void)
{
	put_at(15, open("going", O_WRONLY | O_CREAT | O_TRUNC, 0600));
	put_at(15, open("going", O_PATH));
	unlink("going");
}

static void setup_notify(void)
{
	mkdir("watched", 0700);
	put_at(15, open("watched", O_RDONLY | O_DIRECTORY));
	EXPECT(fcntl(15, F_NOTIFY, DN_CREATE | DN_MULTISHOT), 0);
}

static void setup_thread_owner(void)
{
	struct f_owner_ex owner = {F_OWNER_TID, getpid()};
	int ends[2] = {-1, -1};

	EXPECT(pipe(ends), 0);
	put_at(15, ends[0]);
	EXPECT(fcntl(15, F_SETOWN_EX, &owner), 0);
}

static void setup_mapped_lease(void)
{
	put_at(15, open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600));
	EXPECT(ftruncate(15, 4096), 0);
	EXPECT(fcntl(15, F_SETLEASE, F_WRLCK), 0);
	EXPECT(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 15, 0) == MAP_FAILED, false);
}

static void setup_device_lock(void)
{
	put_at(15, open("/dev/null", O_RDWR));
	EXPECT(flock(15, LOCK_EX), 0);
}

static int wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return 0;
}

/* The other end of a pipe is somewhere else. */
static void setup_holder(void)
{
	int ends[2] = {-1, -1};
	pid_t pid;

	EXPECT(pipe(ends), 0);
	put_at(15, ends[0]);
	put_at(16, ends[1]);
	pid = fork();
	if (!pid)
		wait_for_ever(NULL);
	memo->number[0] = pid;
}

static void setup_driver(void)
{
	put_at(15, open("/dev/kmsg", O_RDONLY));
}

static const struct {
	const char *name;
	void (*setup)(void);
	const char *want;
} cases[] = {
	{"sockets", setup_socket,
		"): sockets of family AF_NETLINK with protocol 10 are not supported"},
	{"userfaultfd", setup_userfaultfd, "userfaultfd descriptors are not supported yet"},
	{"a process's /proc file", setup_proc, "which is not being saved"},
	{"a process's /proc", setup_proc_dir, "which is not being saved"},
	{"a removed path", setup_path, "a path (O_PATH) that no longer names its file"},
	{"directory notification", setup_notify, "notification (F_NOTIFY)"},
	{"signals to a thread", setup_thread_owner, "are for thread "},
	{"a lease on a mapped file", setup_mapped_lease, "a lease for writing on a file that"},
	{"a lock on a device", setup_device_lock, "it holds a lock (FLOCK)"},
	{"a device with state", setup_driver, "the device 1:11 is not supported"},
};

static void test_holder(void)
{
	refuses("a pipe that leads to another process", setup_holder,
		"which is not being saved");
	if ((pid_t)memo->number[0] > 0)
		kill(memo->number[0], SIGKILL);
}

int main(void)
{
	cycle_begin();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refuses(cases[i].name, cases[i].setup, cases[i].want);
	test_holder();
	return done_testing();
}
