/* Every kind of descriptor comes back as it was, and saving it changes nothing. */
#include <dirent.h>
#include <linux/memfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <time.h>

#include "supervisor/fd_table/kind_table.h"
#include "t/unit/fd_cycle.h"

static int flags_of(int fd)
{
	return fcntl(fd, F_GETFL);
}

static off_t position(int fd)
{
	return lseek(fd, 0, SEEK_CUR);
}

static void write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		differs("%s: %s", name, strerror(errno));
	close(fd);
}

static bool holds(int fd, const char *text, off_t at)
{
	char have[256] = "";

	return pread(fd, have, strlen(text), at) == (ssize_t)strlen(text) &&
	       !strcmp(have, text);
}

static bool gives(int fd, const char *text)
{
	char have[256] = "";
	ssize_t n = read(fd, have, sizeof(have) - 1);

	return n == (ssize_t)strlen(text) && !strcmp(have, text);
}

/* ---- files ---- */

static void setup_regular(void)
{
	write_file("regular", "0123456789");
	write_file("written", "0123456789");
	put_at(10, open("regular", O_RDONLY));
	lseek(10, 5, SEEK_SET);
	put_at(11, dup(10));
	put_at(12, open("regular", O_RDONLY));
	put_at(13, open("written", O_WRONLY | O_APPEND | O_DSYNC));
	put_at(20, open("written", O_RDWR | O_NONBLOCK | O_NOATIME | O_CREAT, 0600));
	lseek(20, 100, SEEK_SET);
	put_at(0, open("regular", O_RDONLY));
	lseek(0, 3, SEEK_SET);
	memo->number[0] = flags_of(10);
	memo->number[1] = flags_of(13);
	memo->number[2] = flags_of(20);
}

static void check_regular(void)
{
	EXPECT(position(10), 5);
	EXPECT(position(12), 0);
	EXPECT(position(20), 100);
	EXPECT(position(0), 3);
	lseek(11, 7, SEEK_SET);
	EXPECT(position(10), 7);
	EXPECT(position(12), 0);
	EXPECT(flags_of(10), memo->number[0]);
	EXPECT(flags_of(13), memo->number[1]);
	EXPECT(flags_of(20), memo->number[2]);
	EXPECT(fcntl(21, F_GETFD), -1);
	EXPECT(gives(0, "3456789"), true);
}

#define BIG (3 << 20)

static void setup_unlinked(void)
{
	write_file("gone", "begin");
	write_file("linked", "two names");
	link("linked", "other name");
	put_at(20, open("gone", O_RDWR | O_APPEND));
	put_at(21, open("gone", O_RDONLY));
	put_at(22, open("gone", O_WRONLY));
	put_at(24, open("linked", O_RDONLY));
	pwrite(22, "middle", 6, BIG / 2 - 3);
	pwrite(22, "end", 3, BIG + 4);
	fchmod(22, 0460);
	lseek(21, 2, SEEK_SET);
	unlink("gone");
	unlink("linked");
	put_at(23, open(".", O_TMPFILE | O_RDWR, 0600));
	if (write(23, "temporary", 9) != 9)
		differs("write: %s", strerror(errno));
}

static void check_unlinked(void)
{
	struct stat a, b;

	fstat(20, &a);
	fstat(22, &b);
	EXPECT(a.st_ino, b.st_ino);
	EXPECT(a.st_nlink, 0);
	EXPECT(a.st_mode & 07777, 0460);
	EXPECT(a.st_size, BIG + 7);
	EXPECT(a.st_blocks < BIG / 512 / 2, true);
	EXPECT(position(21), 2);
	EXPECT(flags_of(21) & O_ACCMODE, O_RDONLY);
	EXPECT(flags_of(22) & O_ACCMODE, O_WRONLY);
	EXPECT(flags_of(20) & (O_ACCMODE | O_APPEND), O_RDWR | O_APPEND);
	EXPECT(holds(21, "begin", 0), true);
	EXPECT(holds(21, "middle", BIG / 2 - 3), true);
	EXPECT(holds(21, "end", BIG + 4), true);
	EXPECT(pwrite(22, "B", 1, 0), 1);
	EXPECT(holds(21, "Begin", 0), true);
	EXPECT(position(23), 9);
	EXPECT(holds(23, "temporary", 0), true);
	EXPECT(holds(24, "two names", 0), true);
}

static void setup_named(void)
{
	char entries[1000];

	mkdir("dir", 0700);
	for (int i = 0; i < 100; i++) {
		char name[64];

		snprintf(name, sizeof(name), "dir/entry-with-a-name-%d", i);
		write_file(name, "");
	}
	put_at(30, open("dir", O_RDONLY | O_DIRECTORY));
	EXPECT(syscall(SYS_getdents64, 30, entries, sizeof(entries)) > 0, true);
	memo->number[0] = position(30);
	put_at(31, open("/dev/null", O_RDWR));
	put_at(32, open("/dev/zero", O_RDONLY));
	put_at(33, open("/dev/urandom", O_RDONLY | O_NONBLOCK));
	put_at(34, open("/dev/full", O_WRONLY));
	symlink("nowhere", "symlink");
	put_at(35, open("symlink", O_PATH | O_NOFOLLOW));
	put_at(36, open("dir", O_PATH | O_DIRECTORY));
	put_at(37, open("/proc/meminfo", O_RDONLY));
	EXPECT(read(37, entries, 10), 10);
	put_at(38, open("/sys/devices/system/cpu/online", O_RDONLY));
}

static void check_named(void)
{
	char text[100];
	struct stat st;

	EXPECT(position(30), memo->number[0]);
	EXPECT(memo->number[0] > 0, true);
	EXPECT(syscall(SYS_getdents64, 30, memo->text, sizeof(memo->text)) > 0, true);
	fstat(31, &st);
	EXPECT(st.st_rdev, makedev(1, 3));
	EXPECT(read(32, text, 10), 10);
	EXPECT(flags_of(33) & O_NONBLOCK, O_NONBLOCK);
	EXPECT(write(34, "x", 1), -1);
	EXPECT(errno, ENOSPC);
	EXPECT(readlinkat(35, "", text, sizeof(text)), 7);
	EXPECT(flags_of(36) & (O_PATH | O_DIRECTORY), O_PATH | O_DIRECTORY);
	EXPECT(fstatat(36, "entry-with-a-name-5", &st, 0), 0);
	EXPECT(position(37), 10);
	EXPECT(read(37, text, 10), 10);
	EXPECT(read(38, text, 10) > 0, true);
}

/* ---- memfd ---- */

static void setup_memfd(void)
{
	int fd = syscall(SYS_memfd_create, "some name", MFD_ALLOW_SEALING);

	put_at(50, fd);
	EXPECT(write(50, "contents", 8), 8);
	EXPECT(ftruncate(50, 1 << 20), 0);
	fchmod(50, 0640);
	put_at(51, open("/proc/self/fd/50", O_RDONLY));
	fcntl(50, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	put_at(52, syscall(SYS_memfd_create, "plain", 0));
	put_at(53, open("/proc/self/fd/52", O_WRONLY));
	memo->number[0] = flags_of(50);
}

static void check_memfd(void)
{
	struct stat a, b;
	char link[100] = "";

	fstat(50, &a);
	fstat(51, &b);
	EXPECT(a.st_ino, b.st_ino);
	EXPECT(a.st_size, 1 << 20);
	EXPECT(a.st_mode & 07777, 0640);
	EXPECT(a.st_blocks, 8);
	EXPECT(position(50), 8);
	EXPECT(position(51), 0);
	EXPECT(flags_of(50), memo->number[0]);
	EXPECT(gives(51, "") || !position(51), 0);
	EXPECT(holds(51, "contents", 0), true);
	EXPECT(fcntl(50, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	EXPECT(fcntl(52, F_GET_SEALS), F_SEAL_SEAL);
	EXPECT(readlink("/proc/self/fd/50", link, sizeof(link) - 1) > 0, true);
	EXPECT(strcmp(link, "/memfd:some name (deleted)"), 0);
	EXPECT(write(53, "through", 7), 7);
	EXPECT(holds(52, "through", 0), true);
}

/* ---- pipes ---- */

static void make_pipe(int number, int flags)
{
	int ends[2] = {-1, -1};

	EXPECT(pipe2(ends, flags), 0);
	put_at(number, ends[0]);
	put_at(number + 1, ends[1]);
}

static void setup_pipe(void)
{
	static char page[4096];

	make_pipe(60, 0);
	EXPECT(write(61, "hello", 5), 5);
	EXPECT(fcntl(61, F_SETPIPE_SZ, 131072), 131072);
	fcntl(60, F_SETFL, O_NONBLOCK);
	make_pipe(62, O_DIRECT | O_NONBLOCK);
	EXPECT(write(63, "one", 3) + write(63, "three", 5) + write(63, page, 4096), 4104);
	make_pipe(64, 0);
	EXPECT(write(65, "last words", 10), 10);
	close(65);
	make_pipe(66, O_NONBLOCK);
	close(66);
	make_pipe(68, O_NONBLOCK);
	while (write(69, page, sizeof(page)) > 0)
		;
	make_pipe(70, O_DIRECT);
	EXPECT(write(71, "single", 6), 6);
	make_pipe(72, 0);
	put_at(74, open("/proc/self/fd/72", O_RDWR));
	put_at(75, open("/proc/self/fd/72", O_RDONLY | O_NONBLOCK));
	memo->number[0] = flags_of(60);
	memo->number[1] = flags_of(61);
	memo->number[2] = flags_of(75);
}

static void check_pipe(void)
{
	static char pages[65536 + 10];
	char byte;

	signal(SIGPIPE, SIG_IGN);
	EXPECT(flags_of(60), memo->number[0]);
	EXPECT(flags_of(61), memo->number[1]);
	EXPECT(fcntl(60, F_GETPIPE_SZ), 131072);
	EXPECT(gives(60, "hello"), true);
	EXPECT(read(60, &byte, 1), -1);
	EXPECT(errno, EAGAIN);
	EXPECT(write(61, "more", 4), 4);
	EXPECT(gives(60, "more"), true);
	EXPECT(gives(62, "one"), true);
	EXPECT(read(62, &byte, 1), 1);
	EXPECT(read(62, pages, sizeof(pages)), 4096);
	EXPECT(read(62, pages, sizeof(pages)), -1);
	EXPECT(gives(64, "last words"), true);
	EXPECT(read(64, &byte, 1), 0);
	EXPECT(write(67, "x", 1), -1);
	EXPECT(errno, EPIPE);
	EXPECT(write(69, "x", 1), -1);
	EXPECT(read(68, pages, sizeof(pages)), 65536);
	EXPECT(write(71, "next", 4), 4);
	EXPECT(gives(70, "single"), true);
	EXPECT(gives(70, "next"), true);
	EXPECT(write(74, "both", 4), 4);
	EXPECT(gives(75, "both"), true);
	EXPECT(flags_of(75), memo->number[2]);
	EXPECT(flags_of(74) & O_ACCMODE, O_RDWR);
}

static void setup_fifo(void)
{
	mkfifo("fifo", 0600);
	put_at(60, open("fifo", O_RDONLY | O_NONBLOCK));
	put_at(61, open("fifo", O_WRONLY));
	EXPECT(write(61, "hello", 5), 5);
	mkfifo("lonely", 0600);
	put_at(62, open("lonely", O_RDONLY | O_NONBLOCK));
	memo->number[0] = flags_of(60);
	memo->number[1] = flags_of(61);
}

static void check_fifo(void)
{
	char byte;

	EXPECT(flags_of(60), memo->number[0]);
	EXPECT(flags_of(61), memo->number[1]);
	EXPECT(gives(60, "hello"), true);
	EXPECT(write(61, "more", 4), 4);
	EXPECT(gives(60, "more"), true);
	EXPECT(read(62, &byte, 1), 0);
}

static void setup_owner(void)
{
	make_pipe(60, 0);
	fcntl(60, F_SETSIG, SIGUSR1);
	fcntl(60, F_SETOWN, getpid());
	fcntl(60, F_SETFL, O_ASYNC | O_NONBLOCK);
}

static void check_owner(void)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	EXPECT(fcntl(60, F_GETOWN), getpid());
	EXPECT(fcntl(60, F_GETSIG), SIGUSR1);
	EXPECT(flags_of(60), O_ASYNC | O_NONBLOCK);
	EXPECT(write(61, "x", 1), 1);
	EXPECT(sigtimedwait(&set, &info, &(struct timespec){5, 0}), SIGUSR1);
	EXPECT(info.si_fd, 60);
}

/* ---- events ---- */

static void setup_eventfd(void)
{
	uint64_t n = 1ull << 40;

	put_at(80, eventfd(0, EFD_NONBLOCK));
	EXPECT(write(80, &n, sizeof(n)), 8);
	put_at(81, dup(80));
	put_at(82, eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK));
	put_at(83, eventfd(0, 0));
	memo->number[0] = flags_of(80);
}

static void check_eventfd(void)
{
	uint64_t n = 0;

	EXPECT(flags_of(80), memo->number[0]);
	EXPECT(flags_of(83), O_RDWR);
	EXPECT(read(81, &n, sizeof(n)), 8);
	EXPECT(n, 1ll << 40);
	EXPECT(read(80, &n, sizeof(n)), -1);
	EXPECT(read(82, &n, sizeof(n)), 8);
	EXPECT(n, 1);
	EXPECT(read(82, &n, sizeof(n)) + read(82, &n, sizeof(n)), 16);
	EXPECT(read(82, &n, sizeof(n)), -1);
}

static void arm(int fd, int flags, time_t seconds, long interval_ns)
{
	struct itimerspec t = {.it_value = {seconds, 1000}, .it_interval = {0, interval_ns}};

	EXPECT(timerfd_settime(fd, flags, &t, NULL), 0);
}

static void setup_timerfd(void)
{
	struct pollfd p[2] = {{91, POLLIN, 0}, {93, POLLIN, 0}};

	put_at(90, timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK));
	arm(90, 0, 1000, 0);
	put_at(91, timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
	arm(91, 0, 0, 1000);
	put_at(92, timerfd_create(CLOCK_REALTIME, 0));
	put_at(93, timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK));
	arm(93, TFD_TIMER_ABSTIME, time(NULL) - 10, 0);
	put_at(94, timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK));
	memo->number[0] = time(NULL) + 3600;
	arm(94, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, memo->number[0], 5);
	put_at(95, timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
	arm(95, TFD_TIMER_ABSTIME, clock_ns(CLOCK_MONOTONIC) / 1000000000 + 500, 0);
	EXPECT(poll(p, 1, -1) + poll(p + 1, 1, -1), 2);
	memo->number[1] = clock_ns(CLOCK_MONOTONIC);
}

static char *timer_info(int fd, const char *key)
{
	cleanup_free char *path = xasprintf("/proc/self/fdinfo/%d", fd);
	char *text = NULL;
	size_t len;

	read_file(path, &text, &len, NULL);
	return xasprintf("%.20s", status_value(text, key));
}

static void check_timerfd(void)
{
	time_t least, most;
	struct itimerspec t;
	uint64_t n = 0;

	EXPECT(timerfd_gettime(90, &t), 0);
	EXPECT(t.it_value.tv_sec >= 900 && t.it_value.tv_sec <= 1000, true);
	EXPECT(strncmp(timer_info(90, "clockid"), "7\n", 2), 0);
	EXPECT(read(91, &n, sizeof(n)), 8);
	EXPECT(n >= 1, true);
	EXPECT(timerfd_gettime(91, &t), 0);
	EXPECT(t.it_interval.tv_nsec, 1000);
	EXPECT(timerfd_gettime(92, &t), 0);
	EXPECT(t.it_value.tv_sec + t.it_value.tv_nsec, 0);
	EXPECT(flags_of(92), O_RDWR);
	EXPECT(read(93, &n, sizeof(n)), 8);
	EXPECT(n, 1);
	EXPECT(read(93, &n, sizeof(n)), -1);
	/* not time(): its clock is up to a tick behind that of the timers */
	most = memo->number[0] - clock_ns(CLOCK_REALTIME) / 1000000000;
	EXPECT(timerfd_gettime(94, &t), 0);
	least = memo->number[0] - clock_ns(CLOCK_REALTIME) / 1000000000;
	EXPECT(t.it_value.tv_sec + 1 >= least && t.it_value.tv_sec <= most, true);
	EXPECT(t.it_interval.tv_nsec, 5);
	EXPECT(strncmp(timer_info(94, "settime flags"), "03", 2), 0);
	EXPECT(timerfd_gettime(95, &t), 0);
	EXPECT(t.it_value.tv_sec >= 400 && t.it_value.tv_sec <= 500, true);
	EXPECT(strncmp(timer_info(95, "settime flags"), "01", 2), 0);
}

/* ---- locks ---- */

static void lock(int fd, int command, int type, off_t start, off_t length)
{
	struct flock l = {.l_type = type, .l_start = start, .l_len = length};

	EXPECT(fcntl(fd, command, &l), 0);
}

static void setup_locks(void)
{
	write_file("flock", "");
	write_file("ofd", "");
	put_at(10, open("flock", O_RDONLY));
	EXPECT(flock(10, LOCK_EX), 0);
	put_at(13, open("ofd", O_RDWR));
	lock(13, F_OFD_SETLK, F_WRLCK, 7, 1);
}

static struct flock found_lock(const char *name, off_t start)
{
	struct flock l = {.l_type = F_WRLCK, .l_start = start, .l_len = 1};
	int fd = open(name, O_RDWR);

	fcntl(fd, F_OFD_GETLK, &l);
	close(fd);
	return l;
}

/* Looked at from a process of its own. POSIX locks are taken later: t/victim/locks.c. */
static void check_locks(void)
{
	int status = 1;
	pid_t pid;

	pid = fork();
	if (!pid) {
		int fd = open("flock", O_RDONLY);

		EXPECT(flock(fd, LOCK_SH | LOCK_NB), -1);
		EXPECT(found_lock("ofd", 7).l_type, F_WRLCK);
		EXPECT(found_lock("ofd", 7).l_pid, -1);
		EXPECT(found_lock("ofd", 8).l_type, F_UNLCK);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	EXPECT(status, 0);
}

/* ---- shared mappings ---- */

#define ROOM 65536

/* Four times ROOM, reserved before anything is forked: what restores maps there, too, and must not map over
   memory that it has taken meanwhile. */
static char *reserved;

static char *map_shared(int i, int fd, size_t size)
{
	int flags = MAP_SHARED | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
	char *p = mmap(reserved + i * ROOM, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED) {
		differs("mmap: %s", strerror(errno));
		return NULL;
	}
	memo->map_start[i] = (uintptr_t)p;
	memo->map_size[i] = size;
	return p;
}

static void setup_mappings(void)
{
	int fd = syscall(SYS_memfd_create, "mapped", 0);

	EXPECT(ftruncate(fd, 8192), 0);
	put_at(20, fd);
	strcpy(map_shared(0, 20, 8192) + 4096, "descriptor leads here");
	fd = syscall(SYS_memfd_create, "closed", 0);
	EXPECT(ftruncate(fd, 8192), 0);
	strcpy(map_shared(1, fd, 8192), "nothing leads here");
	close(fd);
	strcpy(map_shared(2, -1, ROOM) + 20480, "never did");
	write_file("mapped", "");
	fd = open("mapped", O_RDWR);
	EXPECT(ftruncate(fd, 4096), 0);
	strcpy(map_shared(3, fd, 4096), "unlinked");
	close(fd);
	unlink("mapped");
}

static const char *mapped(int i)
{
	return (const char *)memo->map_start[i];
}

static void check_mappings(void)
{
	EXPECT(strcmp(mapped(0) + 4096, "descriptor leads here"), 0);
	EXPECT(strcmp(mapped(1), "nothing leads here"), 0);
	EXPECT(strcmp(mapped(2) + 20480, "never did"), 0);
	EXPECT(strcmp(mapped(3), "unlinked"), 0);
	EXPECT(pwrite(20, "D", 1, 4096), 1);
	EXPECT(strcmp(mapped(0) + 4096, "Descriptor leads here"), 0);
}

/* ---- many ---- */

#define MANY 500

static void setup_many(void)
{
	write_file("many", "0123456789");
	for (int fd = 10; fd < MANY; fd += 5) {
		put_at(fd, open("many", O_RDONLY));
		lseek(fd, fd % 10, SEEK_SET);
		put_at(fd + 1, dup(fd));
		make_pipe(fd + 2, 0);
		put_at(fd + 4, eventfd(fd, 0));
	}
}

static void check_many(void)
{
	uint64_t n;

	for (int fd = 10; fd < MANY; fd += 5) {
		EXPECT(position(fd), fd % 10);
		lseek(fd, 2, SEEK_SET);
		EXPECT(position(fd + 1), 2);
		EXPECT(write(fd + 3, &fd, sizeof(fd)), 4);
		EXPECT(read(fd + 2, &n, sizeof(n)), 4);
		EXPECT((int)n, fd);
		EXPECT(read(fd + 4, &n, sizeof(n)), 8);
		EXPECT(n, fd);
	}
}

/* ---- standard streams ---- */

static int terminal(char *name, size_t size)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0 && (grantpt(fd) || unlockpt(fd) || ptsname_r(fd, name, size)))
		abort();
	return fd;
}

static void setup_inherited(void)
{
	put_at(5, open(ttyname(0), O_WRONLY | O_NOCTTY));
	put_at(6, dup(2));
}

static void check_inherited(void)
{
	if (isatty(1))
		return; /* still the victim */
	EXPECT(write(1, "[1]", 3), 3);
	EXPECT(write(2, "[2]", 3), 3);
	EXPECT(write(5, "[5]", 3), 3);
	EXPECT(gives(0, "input"), true);
}

/* The terminal is this process's own while the victim starts and is saved, as it would be the
 * supervisor's. */
static void test_inherited(void)
{
	int in[2], out[2], errors[2], own[3], leader, slave;
	struct err e = ERR_INIT;
	struct checkpoint *c;
	struct victim v;
	char name[100];

	leader = terminal(name, sizeof(name));
	slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		own[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
		dup2(slave, i);
	}
	fd_remember_streams();
	own_streams = true;
	v = victim_start(setup_inherited, check_inherited);
	own_streams = false;
	save(v.pid, &e);
	for (int i = 0; i < 3; i++)
		dup2(own[i], i);
	victim_end(&v, false);
	if (!no_differences("saved", "standard streams", &e))
		return;
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(errors, O_CLOEXEC))
		abort();
	memo->std[0] = in[0];
	memo->std[1] = out[1];
	memo->std[2] = errors[1];
	EXPECT(write(in[1], "input", 5), 5);
	c = reopen(false, &e);
	if (c)
		restore(c, check_inherited);
	EXPECT(gives(out[0], "[1][5]"), true);
	EXPECT(gives(errors[0], "[2]"), true);
	no_differences("restored to other streams", "standard streams", &e);
	checkpoint_close(c);
	close(leader);
	close(slave);
}

/* ---- files that change between ---- */

static void setup_log(void)
{
	write_file("log", "before");
	put_at(10, open("log", O_WRONLY | O_APPEND));
	write_file("read", "before");
	put_at(11, open("read", O_RDONLY));
}

static void append_to(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_APPEND);

	EXPECT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static bool file_is(const char *name, const char *text)
{
	cleanup_free char *have = NULL;
	size_t len;

	return !read_file(name, &have, &len, NULL) && !strcmp(have, text);
}

static void check_again(bool rollback, const char *want, const char *name)
{
	struct err e = ERR_INIT;
	struct checkpoint *c = reopen(rollback, &e);

	says(c ? notices : e.msg, want, name);
	if (c)
		checkpoint_close(c);
}

/* A line about the description that @fd leads to. */
static void shows(int fd, const char *want)
{
	struct checkpoint *c = reopen(false, NULL);
	const struct image_description *x;
	const struct image_fd *fds;
	cleanup_buf struct buf out = {0};
	size_t count, n;

	x = image_note_array(c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &n);
	fds = image_note_array(c->processes[0], IMAGE_NOTE_FDS, struct image_fd, &count);
	for (size_t i = 0; i < count; i++)
		if (fds[i].fd == fd)
			fd_show(c->job, &x[fds[i].description], &out);
	buf_add(&out, "", 1);
	says(out.data, want, "shown in words");
	checkpoint_close(c);
}

static void test_changes(void)
{
	struct victim v = victim_start(setup_log, NULL);
	struct err e = ERR_INIT;

	save(v.pid, &e);
	victim_end(&v, false);
	no_differences("saved", "changing files", &e);
	check_again(false, "", "unchanged files are no news");
	ok(!notices[0], "and make no notice");
	shows(10, "/log, writing, at 0 of 6 bytes, append");
	append_to("log", " after");
	append_to("read", " after");
	check_again(false, "/log has grown by 6 bytes since the checkpoint; they are kept",
		"a file has grown");
	says(notices, "/read has changed since the checkpoint",
		"a file that is read has changed");
	ok(file_is("log", "before after"), "the growth is kept");
	check_again(true, "are now in", "rollback");
	ok(file_is("log", "before") && file_is("log.trecr-tail", " after"),
		"the growth is moved aside");
	append_to("log", " more");
	check_again(true, "log.trecr-tail.1", "a second rollback takes a fresh name");
	ok(file_is("log.trecr-tail", " after") && file_is("log.trecr-tail.1", " more"),
		"no tail is lost");
	EXPECT(truncate("log", 3), 0);
	check_again(false, "/log: it is shorter than at the checkpoint (3 bytes, it had 6)",
		"a file has shrunk");
	unlink("log");
	check_again(
		false, "log (descriptor 10): No such file or directory", "a file is missing");
	mkfifo("log", 0600);
	check_again(false, "log (descriptor 10)", "another file has its name");
}

int main(void)
{
	cycle_begin();
	reserved = mmap(
		NULL, 4 * ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (reserved == MAP_FAILED)
		abort();
	cycle("files", setup_regular, check_regular);
	cycle("unlinked files", setup_unlinked, check_unlinked);
	cycle("directories, devices, paths", setup_named, check_named);
	cycle("memfd", setup_memfd, check_memfd);
	cycle("pipes", setup_pipe, check_pipe);
	cycle("FIFOs", setup_fifo, check_fifo);
	cycle("owner and signal", setup_owner, check_owner);
	cycle("eventfd", setup_eventfd, check_eventfd);
	cycle("timerfd", setup_timerfd, check_timerfd);
	cycle("locks", setup_locks, check_locks);
	cycle("shared mappings", setup_mappings, check_mappings);
	cycle("many", setup_many, check_many);
	test_inherited();
	test_changes();
	return done_testing();
}
