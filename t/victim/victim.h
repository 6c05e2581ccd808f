/*
 * victim.h - the harness of a victim: a small program that is checkpointed and brought back.
 *
 *	prepare some state
 *	victim_ready()		prints "ready"
 *	victim_wait()		the test does its work here, then sends SIGUSR1
 *	CHECK() the state, and go on using it
 *	return victim_done()	prints "ok", or fails
 *
 * A victim also defines victim_hurt(), which spoils the very thing it holds. It is called
 * instead of a restart when VICTIM_HURT is in the environment: t/victims.t runs every victim
 * so and expects it to fail, which proves that its checks look at something.
 *
 * Output goes through write(2), so that no buffer of stdio is part of the story.
 */
#ifndef T_VICTIM_H
#define T_VICTIM_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define SEC  1000000000ull
#define MSEC 1000000ull
#define KIB  1024ul
#define MIB  (1024ul * 1024)
#define GIB  (1024ul * 1024 * 1024)

void victim_hurt(void);

static int victim_failures;
static pid_t victim_pid;

static inline void victim_say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(1, line, n) != n)
		_exit(3);
}

/* What differs is said, and remembered for victim_done(). */
#define CHECK(cond, ...)                                                                       \
	do {                                                                                   \
		if (!(cond))                                                                   \
			victim_differs(__FILE__, __LINE__, #cond, __VA_ARGS__);                \
	} while (0)

static __attribute__((noinline, format(printf, 4, 5))) void victim_differs(
	const char *file, int line, const char *cond, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	victim_say("differs: %s:%d: %s: %s", file, line, cond, text);
	victim_failures++;
}

/* Preparation that must work; a machine that cannot do it is no finding about trecr. */
#define MUST(cond)                                                                             \
	do {                                                                                   \
		if (!(cond)) {                                                                 \
			victim_say("cannot prepare: %s:%d: %s: %s", __FILE__, __LINE__, #cond, \
				strerror(errno));                                              \
			_exit(2);                                                              \
		}                                                                              \
	} while (0)

/* This machine or user cannot hold such a state. */
static inline void victim_skip(const char *why)
{
	victim_say("skip %s", why);
	_exit(77);
}

/* Before any thread starts, so that none of them ever takes the signal that says go. */
__attribute__((constructor)) static inline void victim_start(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	victim_pid = getpid();
}

static inline void victim_ready(void)
{
	victim_say("ready");
}

/* rt_sigtimedwait returns EINTR when a process is stopped and continued, as signal(7) says:
 * that is no finding here; t/victim/blocked.c is where it would be one. */
static inline void victim_wait(void)
{
	sigset_t set;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	while (sigwaitinfo(&set, &info) != SIGUSR1)
		;
	if (getenv("VICTIM_HURT"))
		victim_hurt();
}

static inline int victim_done(void)
{
	CHECK(getpid() == victim_pid, "process id was %d, is %d", victim_pid, getpid());
	if (victim_failures)
		return 1;
	victim_say("ok");
	return 0;
}

static inline uint64_t victim_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * SEC + t.tv_nsec;
}

static inline uint64_t victim_now(void)
{
	return victim_clock(CLOCK_MONOTONIC);
}

/* When it is too late for what comes at once, or within seconds on a busy machine, TEST_SLOW times as late on a
 * slow one (t/lib.sh); of victim_now(). */
static inline uint64_t victim_limit(void)
{
	const char *text = getenv("TEST_SLOW");
	int slow = text ? atoi(text) : 1;

	return victim_now() + 20 * SEC * (slow > 1 ? slow : 1);
}

static inline pid_t victim_tid(void)
{
	return syscall(SYS_gettid);
}

/* ---- contents ---- */

static inline uint64_t victim_word(uint64_t seed, uint64_t i)
{
	uint64_t x = (seed << 40) + i + 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* @size is a multiple of 8. Not to be merged with its callers, as gcc folds the large
 * constants into the address of thread-local arrays, out of the linker's reach. */
static __attribute__((noipa)) void victim_fill(void *p, size_t size, uint64_t seed)
{
	uint64_t *w = p;

	for (size_t i = 0; i < size / 8; i++)
		w[i] = victim_word(seed, i);
}

#define SAME(p, size, seed, what) victim_same(p, size, seed, what, __FILE__, __LINE__)
static inline bool victim_same(
	const void *p, size_t size, uint64_t seed, const char *what, const char *file, int line)
{
	const uint64_t *w = p;

	for (size_t i = 0; i < size / 8; i++) {
		if (w[i] == victim_word(seed, i))
			continue;
		victim_say("differs: %s:%d: %s: at %p, byte %zu of %zu: %016llx, was %016llx",
			file, line, what, (void *)&w[i], i * 8, size, (long long)w[i],
			(long long)victim_word(seed, i));
		victim_failures++;
		return false;
	}
	return true;
}

#define ZERO(p, size, what) victim_zero(p, size, what, __FILE__, __LINE__)
static inline bool victim_zero(
	const void *p, size_t size, const char *what, const char *file, int line)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < size; i++) {
		if (!b[i])
			continue;
		victim_say("differs: %s:%d: %s: byte %zu of %zu is %02x, was 0", file, line,
			what, i, size, b[i]);
		victim_failures++;
		return false;
	}
	return true;
}

static inline void *victim_map(size_t size, int prot, int flags)
{
	void *p = mmap(NULL, size, prot, flags, -1, 0);

	MUST(p != MAP_FAILED);
	return p;
}

static inline void *victim_anon(size_t size)
{
	return victim_map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
}

/* A file of @size bytes of pattern @seed in the working directory, open for both. */
static inline int victim_file(const char *name, size_t size, uint64_t seed)
{
	char *data = malloc(size + 8);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	MUST(data && fd >= 0);
	victim_fill(data, size, seed);
	MUST(write(fd, data, size) == (ssize_t)size);
	free(data);
	return fd;
}

/* ---- what the kernel says about a mapping ---- */

struct victim_vma {
	unsigned long start, end, offset, inode;
	char prot[5];
	char path[256];
	char flags[520]; /* " rd wr mr ... ", VmFlags of smaps */
	unsigned long anon_huge_kb, page_kb, locked_kb, rss_kb;
};

static inline bool victim_vma(const void *address, struct victim_vma *v)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	bool found = false;

	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		struct victim_vma x = {0};

		if (sscanf(line, "%lx-%lx %4s %lx %*s %lu %255[^\n]", &x.start, &x.end, x.prot,
			    &x.offset, &x.inode, x.path) >= 5) {
			if (found)
				break;
			if ((unsigned long)address >= x.start &&
				(unsigned long)address < x.end) {
				found = true;
				*v = x;
			}
		} else if (found && !strncmp(line, "VmFlags:", 8)) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(v->flags, sizeof(v->flags), "%s ", line + 8);
		} else if (found) {
			sscanf(line, "AnonHugePages: %lu", &v->anon_huge_kb);
			sscanf(line, "KernelPageSize: %lu", &v->page_kb);
			sscanf(line, "Locked: %lu", &v->locked_kb);
			sscanf(line, "Rss: %lu", &v->rss_kb);
		}
	}
	fclose(f);
	return found;
}

/* Whether the mapping at @address has VmFlags @flag ("lo", "hg"). */
static inline bool victim_vmflag(const void *address, const char *flag)
{
	struct victim_vma v;
	char word[8];

	snprintf(word, sizeof(word), " %s ", flag);
	return victim_vma(address, &v) && strstr(v.flags, word);
}

/* The text that the kernel shows of descriptor @fd (man proc_pid_fdinfo). */
static inline void victim_fdinfo(int fd, char *text, size_t size)
{
	char path[64];
	int file, n;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = open(path, O_RDONLY | O_CLOEXEC);
	n = file < 0 ? -1 : read(file, text, size - 1);
	MUST(n > 0);
	close(file);
	text[n] = 0;
}

/* ---- threads ---- */

static inline pthread_t victim_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	MUST(!pthread_create(&t, NULL, fn, arg));
	return t;
}

/* The system call that thread @tid sleeps in, -1 when it runs. */
static inline long victim_sleeps_in(pid_t tid)
{
	char path[64], text[64] = "";
	int fd, n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && text[0] >= '0' && text[0] <= '9' ? strtol(text, NULL, 10) : -1;
}

/* Until @tid sleeps in system call @nr: there is no event to wait for, so look again. */
static inline void victim_until_blocked(pid_t tid, long nr)
{
	uint64_t limit = victim_limit();

	while (victim_sleeps_in(tid) != nr) {
		MUST(victim_now() < limit);
		usleep(500);
	}
}

/* Until thread @tid has ended, which is no event. */
static inline void victim_until_ended(pid_t tid)
{
	char path[64], text[256];
	uint64_t limit = victim_limit();

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	for (;;) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		int n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

		close(fd);
		text[n > 0 ? n : 0] = 0;
		if (n <= 0 || strstr(text, ") Z "))
			return;
		MUST(victim_now() < limit);
		usleep(500);
	}
}

#endif
