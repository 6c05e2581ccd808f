/*
 * signal_forwarding.c - the set of these signals, which process sent one, and to which it goes.
 */
#include "supervisor/start/signal_forwarding.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"

/* A blocked signal is queued even where it is ignored, so blocking suffices for all but these:
 * an ignored SIGCHLD would reap children unseen, and job_control.c stops this process by the
 * default action of the others. */
static const int defaulted[] = {SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU};

static sigset_t saved_mask;
static struct sigaction saved_action[ARRAY_SIZE(defaulted)];

int signals_take(struct err *e)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t all;
	int fd;

	sigfillset(&all);
	fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_set(e, errno, "cannot create a signalfd");
	for (size_t i = 0; i < ARRAY_SIZE(defaulted); i++) {
		if (sigaction(defaulted[i], &action, &saved_action[i]) < 0)
			BUG();
	}
	if (sigprocmask(SIG_SETMASK, &all, &saved_mask) < 0)
		BUG();
	return fd;
}

void signals_hear_children(int fd, bool hear)
{
	sigset_t set;

	sigfillset(&set);
	if (!hear)
		sigdelset(&set, SIGCHLD);
	if (signalfd(fd, &set, 0) < 0)
		BUG();
}

void signals_give_back(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(defaulted); i++) {
		if (sigaction(defaulted[i], &saved_action[i], NULL) < 0)
			BUG();
	}
	if (sigprocmask(SIG_SETMASK, &saved_mask, NULL) < 0)
		BUG();
}

bool signals_mask_suffices(sigset_t *mask)
{
	*mask = saved_mask;
	for (size_t i = 0; i < ARRAY_SIZE(defaulted); i++)
		if (saved_action[i].sa_handler != SIG_DFL)
			return false;
	return true;
}

/* Whether @pid descends from this process. A process that has ended does not count. */
static bool is_descendant(pid_t pid)
{
	pid_t self = getpid();

	while (pid > 1 && pid != self) {
		cleanup_free char *status = procfs_status(pid, pid, NULL);

		if (!status)
			return false;
		pid = status_number(status, "PPid", 10);
	}
	return pid == self;
}

bool signals_for_us_alone(const struct signalfd_siginfo *info)
{
	pid_t sender = info->ssi_pid;

	switch (info->ssi_code) {
	case SI_USER:
	case SI_TKILL:
	case SI_QUEUE:
		/* SIGPIPE and SIGXFSZ for a write of our own carry our own id. A sender in an
		 * outer pid namespace has id 0. */
		return !sender || !is_descendant(sender);
	case SI_KERNEL:
		/* When a terminal goes away only the session's leader is told. */
		return info->ssi_signo == SIGHUP && getsid(0) == getpid();
	default:
		return false;
	}
}

int signals_forward(int pidfd, pid_t child, const struct signalfd_siginfo *info, struct err *e)
{
	siginfo_t queued = {
		.si_signo = info->ssi_signo,
		.si_code = SI_QUEUE,
		.si_pid = getpid(),
		.si_uid = getuid(),
	};
	bool has_value = info->ssi_code == SI_QUEUE;
	int failed;

	/* In an initializer it would take the place of the others, as a member of a union. */
	queued.si_value.sival_ptr = (void *)(uintptr_t)info->ssi_ptr;
	if (pidfd >= 0)
		failed = pidfd_send_signal(
			pidfd, info->ssi_signo, has_value ? &queued : NULL, 0);
	else if (has_value)
		failed = syscall(SYS_rt_sigqueueinfo, child, info->ssi_signo, &queued);
	else
		failed = kill(child, info->ssi_signo);
	if (!failed || errno == ESRCH)
		return 0;
	return err_set(e, errno, "cannot forward signal %u", info->ssi_signo);
}
