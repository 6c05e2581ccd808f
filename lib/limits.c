/*
 * limits.c - what error of which system call stands for which limit, and the limit of open
 * files.
 */
#include "lib/limits.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "lib/util.h"

const char *limit_name(int resource)
{
	static const char *const names[] = {
		[RLIMIT_CPU] = "RLIMIT_CPU",
		[RLIMIT_FSIZE] = "RLIMIT_FSIZE",
		[RLIMIT_DATA] = "RLIMIT_DATA",
		[RLIMIT_STACK] = "RLIMIT_STACK",
		[RLIMIT_CORE] = "RLIMIT_CORE",
		[RLIMIT_RSS] = "RLIMIT_RSS",
		[RLIMIT_NPROC] = "RLIMIT_NPROC",
		[RLIMIT_NOFILE] = "RLIMIT_NOFILE",
		[RLIMIT_MEMLOCK] = "RLIMIT_MEMLOCK",
		[RLIMIT_AS] = "RLIMIT_AS",
		[RLIMIT_LOCKS] = "RLIMIT_LOCKS",
		[RLIMIT_SIGPENDING] = "RLIMIT_SIGPENDING",
		[RLIMIT_MSGQUEUE] = "RLIMIT_MSGQUEUE",
		[RLIMIT_NICE] = "RLIMIT_NICE",
		[RLIMIT_RTPRIO] = "RLIMIT_RTPRIO",
		[RLIMIT_RTTIME] = "RLIMIT_RTTIME",
	};

	BUG_ON(resource < 0 || (size_t)resource >= ARRAY_SIZE(names));
	return names[resource];
}

#define SEE(limits) " (see " limits ")"
#define TASKS       "RLIMIT_NPROC, kernel.pid_max, kernel.threads-max, pids.max of its cgroup"

#define KCMP " (a container that forbids this call? docker run --cap-add SYS_PTRACE allows it)"

/* As the manual pages of the calls have it. */
static const struct {
	long nr;
	int code;
	const char *hint;
} table[] = {
	{SYS_fork, EAGAIN, SEE(TASKS)},
	{SYS_clone3, EAGAIN, SEE(TASKS)},
	{SYS_unshare, ENOSPC, SEE("user.max_*_namespaces")},
	{SYS_pipe2, EMFILE, SEE("RLIMIT_NOFILE")},
	{SYS_fcntl, EPERM, SEE("fs.pipe-max-size, fs.pipe-user-pages-soft and -hard")},
	{SYS_pwrite64, EFBIG, SEE("RLIMIT_FSIZE, and the file system's own limit")},
	{SYS_mlock2, EPERM, SEE("RLIMIT_MEMLOCK")},
	{SYS_mlock2, ENOMEM, SEE("RLIMIT_MEMLOCK")},
	{SYS_mlock2, EAGAIN, SEE("RLIMIT_MEMLOCK")},
	{SYS_mlockall, EPERM, SEE("RLIMIT_MEMLOCK")},
	{SYS_mlockall, ENOMEM, SEE("RLIMIT_MEMLOCK")},
	{SYS_rt_sigqueueinfo, EAGAIN, SEE("RLIMIT_SIGPENDING")},
	{SYS_rt_tgsigqueueinfo, EAGAIN, SEE("RLIMIT_SIGPENDING")},
	{SYS_timer_create, EAGAIN, SEE("RLIMIT_SIGPENDING")},
	{SYS_mq_open, EMFILE, SEE("RLIMIT_MSGQUEUE, RLIMIT_NOFILE")},
	{SYS_mq_open, ENOSPC, SEE("fs.mqueue.queues_max")},
	{SYS_mq_open, EINVAL, SEE("fs.mqueue.msg_max, fs.mqueue.msgsize_max")},
	{SYS_shmget, EINVAL, SEE("kernel.shmmax")},
	{SYS_shmget, ENOSPC, SEE("kernel.shmmni, kernel.shmall")},
	{SYS_semget, EINVAL, SEE("kernel.sem: semaphores in a set")},
	{SYS_semget, ENOSPC, SEE("kernel.sem")},
	{SYS_semop, E2BIG, SEE("kernel.sem: operations in a call")},
	{SYS_msgget, ENOSPC, SEE("kernel.msgmni")},
	{SYS_msgctl, EPERM, SEE("kernel.msgmnb")},
	{SYS_inotify_init1, EMFILE, SEE("fs.inotify.max_user_instances, RLIMIT_NOFILE")},
	{SYS_inotify_add_watch, ENOSPC, SEE("fs.inotify.max_user_watches")},
	/* Allowed with the capability by the filters of Docker and Podman. */
	{SYS_kcmp, EPERM, KCMP},
	{SYS_kcmp, ENOSYS, KCMP " (or a kernel without CONFIG_KCMP)"},
	{SYS_fanotify_init, EMFILE, SEE("fs.fanotify.max_user_groups, RLIMIT_NOFILE")},
};

const char *limit_hint(long nr, int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].nr == nr && table[i].code == code)
			return table[i].hint;
	return "";
}

int limit_err(struct err *e, int code, long nr, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_vset(e, code, fmt, ap);
	va_end(ap);
	return err_append(e, "%s", limit_hint(nr, code));
}

/* What no more than root can have; the default of fs.nr_open. */
#define MANY (1 << 20)

void limit_files_raise(struct rlimit *was)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, was)) {
		*was = (struct rlimit){0};
		return;
	}
	limit.rlim_cur = limit.rlim_max = was->rlim_max < MANY ? MANY : was->rlim_max;
	if (!setrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max = was->rlim_max;
	/* What is available may do. */
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

void limit_files_put_back(const struct rlimit *was)
{
	if (was->rlim_max)
		(void)setrlimit(RLIMIT_NOFILE, was); /* who lowers them may */
}
