/*
 * fault.c - a library to be preloaded into trecr's own processes, which lets one system call of
 * theirs fail.
 *
 * TRECR_FAULT names a file: struct control, shared by all processes that have the library. When
 * its class is set, the call of that class, in that phase of a checkpoint or restart, that
 * brings the countdown to 0 returns EIO instead of being made, or kills the supervisor or
 * another process. Programs under test do not get the library: it takes itself out of the
 * environment.
 *
 * t/tool/faults.c writes the file.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/phase.h"
#include "t/fault/fault.h"

static struct fault_control *control;
static volatile int *phase; /* lib/phase.h */
static __thread pid_t tracee;

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
	phase = dlsym(RTLD_DEFAULT, "phase_now");
	control = p;
	if (!strcmp(program_invocation_short_name, "trecr-run") ||
		!strcmp(program_invocation_short_name, "trecr-restart"))
		control->supervisor = getpid();
}

/* The call that was to fail is made all the same, if we are still there. */
static int send_signal(void)
{
	bool self = control->target == FAULT_SELF;
	pid_t pid = self                              ? getpid()
		    : control->target == FAULT_TRACEE ? tracee
						      : control->target;

	if (self && pid == control->supervisor)
		return 0;
	if (!pid && getpid() != control->supervisor)
		control->other = getpid();
	kill(pid ? pid : control->supervisor, control->signal);
	return 0;
}

/* And then it is made. */
static int hold(enum fault_class class)
{
	const struct timespec moment = {.tv_nsec = 5000000};

	while (control->class == (int)class)
		nanosleep(&moment, NULL);
	return 0;
}

/* The process that has been stopped @calls calls ago. */
static void continue_again(int calls)
{
	bool now = control->stop_calls ? calls == control->stop_calls
				       : phase && *phase == PHASE_THAW;

	if (calls <= 0 || !now || control->continued)
		return;
	kill(control->target, SIGCONT);
	control->continued = 1;
}

static int fails(enum fault_class class)
{
	int left;

	if (!control || control->class != (int)class ||
		(control->phase && (!phase || *phase != control->phase)))
		return 0;
	left = atomic_fetch_sub(&control->countdown, 1);
	if (control->signal == SIGSTOP)
		continue_again(1 - left);
	if (left != 1)
		return 0;
	control->fired = 1;
	if (control->signal == FAULT_HOLD)
		return hold(class);
	if (control->signal)
		return send_signal();
	errno = class == FAULT_WRITE ? ENOSPC : EIO;
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
CALL(FAULT_READ, ssize_t, preadv64, (int fd, const struct iovec *v, int n, off64_t at), fd, v,
	n, at)
CALL(FAULT_READ, ssize_t, readlink, (const char *path, char *p, size_t n), path, p, n)
CALL(FAULT_WRITE, ssize_t, write, (int fd, const void *p, size_t n), fd, p, n)
CALL(FAULT_WRITE, ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t at), fd, p, n,
	at)
CALL(FAULT_WRITE, ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off64_t at), fd, v,
	n, at)
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
CALL(FAULT_QUEUE, int, mq_getattr, (mqd_t q, struct mq_attr *attr), q, attr)
CALL(FAULT_LOOK, int, stat64, (const char *path, struct stat64 *st), path, st)
CALL(FAULT_LOOK, int, lstat64, (const char *path, struct stat64 *st), path, st)
CALL(FAULT_LOOK, int, fstat64, (int fd, struct stat64 *st), fd, st)
CALL(FAULT_LOOK, int, fstatfs64, (int fd, struct statfs64 *fs), fd, fs)
CALL(FAULT_LOOK, int, statfs64, (const char *path, struct statfs64 *fs), path, fs)
CALL(FAULT_OWN, int, chmod, (const char *path, mode_t m), path, m)
CALL(FAULT_OWN, int, fchmod, (int fd, mode_t m), fd, m)
CALL(FAULT_OWN, int, fchown, (int fd, uid_t u, gid_t g), fd, u, g)
CALL(FAULT_OWN, int, lchown, (const char *path, uid_t u, gid_t g), path, u, g)
CALL(FAULT_NUMBER, int, dup, (int fd), fd)
CALL(FAULT_NUMBER, int, dup2, (int fd, int to), fd, to)
CALL(FAULT_NUMBER, int, dup3, (int fd, int to, int flags), fd, to, flags)
CALL(FAULT_NUMBER, off64_t, lseek64, (int fd, off64_t at, int from), fd, at, from)
CALL(FAULT_NUMBER, int, flock, (int fd, int how), fd, how)
CALL(FAULT_NUMBER, ssize_t, tee, (int a, int b, size_t n, unsigned flags), a, b, n, flags)
CALL(FAULT_SYSV, int, shmget, (key_t key, size_t n, int flags), key, n, flags)
CALL(FAULT_SYSV, void *, shmat, (int id, const void *at, int flags), id, at, flags)
CALL(FAULT_SYSV, int, shmctl, (int id, int what, struct shmid_ds *ds), id, what, ds)
CALL(FAULT_SYSV, int, semget, (key_t key, int n, int flags), key, n, flags)
CALL(FAULT_SYSV, int, msgget, (key_t key, int flags), key, flags)
CALL(FAULT_SYSV, int, msgctl, (int id, int what, struct msqid_ds *ds), id, what, ds)
CALL(FAULT_SYSV, int, msgsnd, (int id, const void *p, size_t n, int flags), id, p, n, flags)
CALL(FAULT_SYSV, ssize_t, msgrcv, (int id, void *p, size_t n, long type, int flags), id, p, n,
	type, flags)
CALL(FAULT_MAKE, int, memfd_create, (const char *name, unsigned flags), name, flags)
CALL(FAULT_MAKE, int, eventfd, (unsigned count, int flags), count, flags)
CALL(FAULT_MAKE, int, timerfd_create, (clockid_t clock, int flags), clock, flags)
CALL(FAULT_MAKE, int, timerfd_gettime, (int fd, struct itimerspec *t), fd, t)
CALL(FAULT_MAKE, int, timerfd_settime,
	(int fd, int flags, const struct itimerspec *t, struct itimerspec *old), fd, flags, t,
	old)
CALL(FAULT_MAKE, int, epoll_create1, (int flags), flags)
CALL(FAULT_MAKE, int, epoll_ctl, (int fd, int op, int of, struct epoll_event *v), fd, op, of, v)
CALL(FAULT_MAKE, int, pipe2, (int fds[2], int flags), fds, flags)
CALL(FAULT_MAKE, int, inotify_init1, (int flags), flags)
CALL(FAULT_MAKE, int, inotify_add_watch, (int fd, const char *path, uint32_t mask), fd, path,
	mask)
CALL(FAULT_MAKE, int, fanotify_init, (unsigned flags, unsigned file_flags), flags, file_flags)
CALL(FAULT_SOCKET, int, socket, (int family, int type, int protocol), family, type, protocol)
CALL(FAULT_SOCKET, int, socketpair, (int family, int type, int protocol, int fds[2]), family,
	type, protocol, fds)
CALL(FAULT_SOCKET, int, bind, (int fd, const struct sockaddr *a, socklen_t n), fd, a, n)
CALL(FAULT_SOCKET, int, connect, (int fd, const struct sockaddr *a, socklen_t n), fd, a, n)
CALL(FAULT_SOCKET, int, listen, (int fd, int n), fd, n)
CALL(FAULT_SOCKET, int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), fd, a,
	n, flags)
CALL(FAULT_SOCKET, int, shutdown, (int fd, int how), fd, how)
CALL(FAULT_SOCKET, int, getsockname, (int fd, struct sockaddr *a, socklen_t *n), fd, a, n)
CALL(FAULT_SOCKET, int, getsockopt, (int fd, int level, int name, void *p, socklen_t *n), fd,
	level, name, p, n)
CALL(FAULT_SOCKET, int, setsockopt, (int fd, int level, int name, const void *p, socklen_t n),
	fd, level, name, p, n)
CALL(FAULT_MESSAGE, ssize_t, send, (int fd, const void *p, size_t n, int flags), fd, p, n,
	flags)
CALL(FAULT_MESSAGE, ssize_t, recv, (int fd, void *p, size_t n, int flags), fd, p, n, flags)
CALL(FAULT_MESSAGE, ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), fd, m, flags)
CALL(FAULT_MESSAGE, ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), fd, m, flags)
CALL(FAULT_SETTING, int, sched_getaffinity, (pid_t pid, size_t n, cpu_set_t *set), pid, n, set)
CALL(FAULT_SETTING, int, sched_setaffinity, (pid_t pid, size_t n, const cpu_set_t *set), pid, n,
	set)
CALL(FAULT_SETTING, int, setpgid, (pid_t pid, pid_t group), pid, group)
CALL(FAULT_SETTING, pid_t, setsid, (void), )
CALL(FAULT_SETTING, int, tcsetpgrp, (int fd, pid_t group), fd, group)
CALL(FAULT_NAMESPACE, int, unshare, (int flags), flags)
CALL(FAULT_NAMESPACE, int, setns, (int fd, int type), fd, type)
CALL(FAULT_NAMESPACE, int, chroot, (const char *path), path)
CALL(FAULT_PROCESS, pid_t, fork, (void), )
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

int prctl(int option, ...)
{
	LONGS(4, option);
	return fails(FAULT_SETTING) ? -1 : REAL(prctl)(option, a[0], a[1], a[2], a[3]);
}

int semctl(int id, int number, int what, ...)
{
	LONGS(1, what);
	return fails(FAULT_SYSV) ? -1 : REAL(semctl)(id, number, what, a[0]);
}

mqd_t mq_open(const char *name, int flags, ...)
{
	LONGS(2, flags);
	return fails(FAULT_QUEUE) ? -1 : REAL(mq_open)(name, flags, a[0], a[1]);
}

long ptrace(enum __ptrace_request request, ...)
{
	LONGS(3, request);
	tracee = a[0];
	return fails(FAULT_TRACE) ? -1 : REAL(ptrace)(request, a[0], a[1], a[2]);
}

/* Calls that the C library has no function for. */
long syscall(long number, ...)
{
	LONGS(6, number);
	/* A futex cannot fail so, and a thread that waits for it would wait for long. */
	if (number != SYS_futex && fails(FAULT_RAW))
		return -1;
	return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
