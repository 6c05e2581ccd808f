/*
 * kernel_check.c - the release of the kernel, and calls that fail at whatever they are asked.
 */
#include "supervisor/start/kernel_check.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/kernel_release.h"
#include "lib/util.h"
#include "supervisor/target/ptrace_policy.h"
#include "supervisor/target/tracee.h"

/* From 5.13 on ptrace(2) shows where a thread has registered its rseq area: without that, a program
 * comes back as if it had none, and takes the processor that it was on for the one that it is on. From
 * 5.14 on it shows whether a program has set the sizes of a socket's buffers (SO_BUF_LOCK), and of
 * which network namespace a socket is. */
#define MAJOR 5
#define MINOR 14

int kernel_check(struct err *e)
{
	if (kernel_is_at_least(MAJOR, MINOR))
		return 0;
	return err_set(e, 0, "Linux %s is too old: trecr needs Linux %d.%d or later",
		kernel_release(), MAJOR, MINOR);
}

int kernel_check_restart(struct err *e)
{
	return kernel_check(e) || ptrace_policy_check_clones(e) ? -1 : 0;
}

static bool has_kcmp(void)
{
	return syscall(SYS_kcmp, getpid(), getpid(), KCMP_VM, 0L, 0L) >= 0;
}

static bool has_pidfd_open(void)
{
	cleanup_fd int fd = syscall(SYS_pidfd_open, getpid(), 0);

	return fd >= 0 || errno == EMFILE;
}

/* There is no descriptor -1. */
static bool has_pidfd_getfd(void)
{
	return syscall(SYS_pidfd_getfd, -1, -1, 0) >= 0 || errno == EBADF;
}

const char *kernel_forbids_ptrace(void)
{
	return ptrace_policy_forbids();
}

char *kernel_refused(void)
{
	static const struct {
		const char *name;
		bool (*has)(void);
	} calls[] = {
		{"ptrace(2)", tracee_seize_allowed},
		{"kcmp(2)", has_kcmp},
		{"pidfd_open(2)", has_pidfd_open},
		{"pidfd_getfd(2)", has_pidfd_getfd},
	};
	cleanup_buf struct buf text = {0};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (!calls[i].has())
			buf_printf(&text, "%s%s", text.len ? ", " : "", calls[i].name);
	if (!text.len)
		return NULL;
	buf_add(&text, "", 1);
	return xstrdup(text.data);
}
