/*
 * fault.c - a library to be preloaded into trecr's own processes, which lets one system call of
 * theirs fail.
 *
 * TRECR_FAULT names a file: struct control, shared by all processes that have the library. When
 * its class is set, the call of that class that brings the countdown to 0 returns EIO instead
 * of being made, or kills the supervisor. Programs under test do not
 * get the library: it takes itself out of the environment.
 *
 * t/tool/faults.c writes the file.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/fault/fault.h"

static struct fault_control *control;

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("TRECR_FAULT");
	int fd;
	void *p;

	if (!path || strncmp(program_invocation_short_name, "trecr-", 6))
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	unsetenv("LD_PRELOAD");
	unsetenv("TRECR_FAULT");
	if (fd < 0)
		return;
	p = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return;
	control = p;
	if (!strcmp(program_invocation_short_name, "trecr-run") ||
		!strcmp(program_invocation_short_name, "trecr-restart"))
		control->supervisor = getpid();
}

/* The call that was to fail is made all the same, if we are still there. */
static int kill_supervisor(void)
{
	if (getpid() != control->supervisor)
		control->other = getpid();
	kill(control->supervisor, SIGKILL);
	return 0;
}

static int fails(enum fault_class class)
{
	if (!control || control->class != (int)class ||
		atomic_fetch_sub(&control->countdown, 1) != 1)
		return 0;
	control->fired = 1;
	if (control->kills)
		return kill_supervisor();
	errno = EIO;
	return 1;
}

#define REAL(name)                                                                             \
	({                                                                                     \
		static __typeof__(&name) real_;                                                \
		if (!real_)                                                                    \
			real_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                    \
		real_;                                                                         \
	})

/* A call that is given on as it is. */
#define CALL(class, type, name, params, ...)                                                   \
	type name params                                                                       \
	{                                                                                      \
		if (fails(class))                                                              \
			return (type)-1;                                                       \
		return REAL(name)(__VA_ARGS__);                                                \
	}

CALL(FAULT_READ, ssize_t, read, (int fd, void *p, size_t n), fd, p, n)
CALL(FAULT_READ, ssize_t, pread64, (int fd, void *p, size_t n, off64_t at), fd, p, n, at)
CALL(FAULT_READ, ssize_t, readlink, (const char *path, char *p, size_t n), path, p, n)
CALL(FAULT_WRITE, ssize_t, write, (int fd, const void *p, size_t n), fd, p, n)
CALL(FAULT_WRITE, ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t at), fd, p, n,
	at)
CALL(FAULT_WRITE, int, ftruncate64, (int fd, off64_t n), fd, n)
CALL(FAULT_SYNC, int, fsync, (int fd), fd)
CALL(FAULT_SYNC, int, fdatasync, (int fd), fd)
CALL(FAULT_SYNC, int, syncfs, (int fd), fd)
CALL(FAULT_NAME, int, rename, (const char *a, const char *b), a, b)
CALL(FAULT_NAME, int, renameat, (int a, const char *b, int c, const char *d), a, b, c, d)
CALL(FAULT_NAME, int, mkdirat, (int a, const char *b, mode_t m), a, b, m)
CALL(FAULT_NAME, int, mkdir, (const char *b, mode_t m), b, m)
CALL(FAULT_NAME, int, symlinkat, (const char *a, int b, const char *c), a, b, c)
CALL(FAULT_MEMORY, ssize_t, process_vm_readv,
	(pid_t pid, const struct iovec *a, unsigned long n, const struct iovec *b,
		unsigned long m, unsigned long f),
	pid, a, n, b, m, f)
CALL(FAULT_QUEUE, ssize_t, mq_timedreceive,
	(mqd_t q, char *p, size_t n, unsigned *priority, const struct timespec *t), q, p, n,
	priority, t)
CALL(FAULT_QUEUE, int, mq_timedsend,
	(mqd_t q, const char *p, size_t n, unsigned priority, const struct timespec *t), q, p,
	n, priority, t)
CALL(FAULT_WAIT, pid_t, waitpid, (pid_t pid, int *status, int options), pid, status, options)

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
	if (fails(FAULT_MEMORY))
		return MAP_FAILED;
	return REAL(mmap64)(at, n, prot, flags, fd, offset);
}

int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{
	if (fails(FAULT_PROCESS))
		return EAGAIN;
	return REAL(pthread_create)(t, a, f, arg);
}

#define OPEN(name, first_params, ...)                                                          \
	int name(first_params, int flags, ...)                                                 \
	{                                                                                      \
		va_list ap;                                                                    \
		int mode;                                                                      \
                                                                                               \
		va_start(ap, flags);                                                           \
		mode = va_arg(ap, int);                                                        \
		va_end(ap);                                                                    \
		if (fails(FAULT_OPEN))                                                         \
			return -1;                                                             \
		return REAL(name)(__VA_ARGS__, flags, mode);                                   \
	}
#define COMMA ,
OPEN(open64, const char *path, path)
OPEN(openat64, int dir COMMA const char *path, dir, path)

#define LONGS(n, last)                                                                         \
	long a[n];                                                                             \
	va_list ap;                                                                            \
                                                                                               \
	va_start(ap, last);                                                                    \
	for (int i = 0; i < (n); i++)                                                          \
		a[i] = va_arg(ap, long);                                                       \
	va_end(ap)

int fcntl64(int fd, int command, ...)
{
	LONGS(1, command);
	return fails(FAULT_CONTROL) ? -1 : REAL(fcntl64)(fd, command, a[0]);
}

int ioctl(int fd, unsigned long request, ...)
{
	LONGS(1, request);
	return fails(FAULT_CONTROL) ? -1 : REAL(ioctl)(fd, request, a[0]);
}

long ptrace(enum __ptrace_request request, ...)
{
	LONGS(3, request);
	return fails(FAULT_TRACE) ? -1 : REAL(ptrace)(request, a[0], a[1], a[2]);
}

/* Those that the C library has no function for. */
long syscall(long number, ...)
{
	LONGS(6, number);
	/* A futex cannot fail so, and who waits for it would for long. */
	if (number != SYS_futex && fails(FAULT_RAW))
		return -1;
	return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
