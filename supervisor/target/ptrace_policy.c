/*
 * ptrace_policy.c - seccomp filters, Yama, SELinux, and capabilities of program files.
 */
#include "supervisor/target/ptrace_policy.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/target/tracee.h"

/* Admin-guide/LSM/Yama.rst. */
#define YAMA        "/proc/sys/kernel/yama/ptrace_scope"
#define YAMA_ADMIN  2
#define YAMA_NOBODY 3

/* Fedora's and Red Hat's policies have the boolean: "1 1", as it is and as it will be. A permissive policy denies nothing. */
#define SELINUX         "/sys/fs/selinux/booleans/deny_ptrace"
#define SELINUX_ENFORCE "/sys/fs/selinux/enforce"

/* The number that a file begins with; 0: there is no such file. */
static int first_number(const char *path)
{
	char text[16] = "";
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	return atoi(text);
}

const char *ptrace_policy_forbids(void)
{
	int yama = first_number(YAMA);

	if (!tracee_seize_allowed())
		return "ptrace(2) is forbidden here (by a container? docker run --cap-add "
		       "SYS_PTRACE allows it)";
	if (yama >= YAMA_NOBODY)
		return "kernel.yama.ptrace_scope is 3, which forbids ptrace(2) to all until "
		       "the "
		       "machine is started without that setting (/etc/sysctl.d)";
	if (yama == YAMA_ADMIN && !procfs_has_capability(CAP_SYS_PTRACE))
		return "kernel.yama.ptrace_scope is 2, which leaves ptrace(2) to root "
		       "(CAP_SYS_PTRACE); sysctl kernel.yama.ptrace_scope=1 allows it";
	if (first_number(SELINUX) && first_number(SELINUX_ENFORCE))
		return "SELinux forbids ptrace(2); setsebool deny_ptrace off allows it";
	return NULL;
}

/* Who gains capabilities by execve(2) is not dumpable (begin_new_exec(), fs/exec.c), and so are its clones. Becoming
 * dumpable again would let anybody of the same user take the capabilities. */
int ptrace_policy_check_clones(struct err *e)
{
	if (prctl(PR_GET_DUMPABLE) == 1 || procfs_has_capability(CAP_SYS_PTRACE) ||
		getxattr("/proc/self/exe", "security.capability", NULL, 0) <= 0)
		return 0;
	return err_set(e, 0,
		"a program that has capabilities from its file (setcap(8)) may not trace the "
		"processes that it makes: remove them (setcap -r), and start it with ambient "
		"capabilities instead (setpriv --ambient-caps, pam_cap(8), or "
		"AmbientCapabilities= of systemd)");
}
