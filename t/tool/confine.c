/*
 * confine [OPTION]... COMMAND [ARG...] - run a command under a seccomp filter, as containers run all of
 * theirs under one: that allows everything, or, with options, all but one call each. Status 77 where there
 * are no filters.
 *
 *	--no-kcmp		kcmp(2) (EPERM), as in some containers
 *	--no-ptrace		ptrace(2) (EPERM), likewise
 *	--no-attach		to attach to another process (EPERM), as with kernel.yama.ptrace_scope 2 or 3
 *	--no-pidfd-open		pidfd_open(2) (EPERM), likewise
 *	--no-setns		setns(2) (EPERM), likewise
 *	--no-tcp-peek-offset	to ask for SO_PEEK_OFF (EOPNOTSUPP), as of TCP before Linux 6.9
 *	--no-thread-pidfd	pidfd_open(2) of a thread (EINVAL), as before Linux 6.9
 *	--no-registered-ring	to ask for an io_uring by the number that a thread knows it by
 *				(EINVAL), as before Linux 6.3
 *	--no-noreplace		renameat2(2) with RENAME_NOREPLACE (EINVAL), as on some network file systems
 *	--no-userfaultfd	userfaultfd(2) (EPERM), as in most containers
 *	--kill-userfaultfd	userfaultfd(2) (the process is killed), as with systemd's SystemCallFilter=
 *	--trap-userfaultfd	userfaultfd(2) (SIGSYS)
 *	--no-rseq-query		to ask for a thread's rseq area (EIO), as before Linux 5.13
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(array)            (sizeof(array) / sizeof((array)[0]))
#define LOAD(field)             BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS_ELSE(value, skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped)
#define HAS_ELSE(bits, skipped) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, skipped)
#define FAIL(code)              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code))
#define KILL                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define TRAP                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
#define ALLOW                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* <asm/unistd.h>, <linux/io_uring.h> and <linux/ptrace.h>, as far as headers may lack it */
#define NR_IO_URING_REGISTER   427
#define NR_PIDFD_OPEN          434
#define USE_REGISTERED_RING    (1u << 31)
#define SEIZE                  0x4206
#define GET_RSEQ_CONFIGURATION 0x420f

static struct sock_filter all[] = {ALLOW};
static struct sock_filter kcmp[] = {LOAD(nr), IS_ELSE(SYS_kcmp, 1), FAIL(EPERM), ALLOW};
static struct sock_filter ptrace[] = {LOAD(nr), IS_ELSE(SYS_ptrace, 1), FAIL(EPERM), ALLOW};
static struct sock_filter attach[] = {LOAD(nr), IS_ELSE(SYS_ptrace, 5), LOAD(args[0]),
	IS_ELSE(SEIZE, 3), LOAD(args[1]), HAS_ELSE(~0u, 1), FAIL(EPERM), ALLOW};
static struct sock_filter pidfd_open[] = {
	LOAD(nr), IS_ELSE(NR_PIDFD_OPEN, 1), FAIL(EPERM), ALLOW};
static struct sock_filter setns[] = {LOAD(nr), IS_ELSE(SYS_setns, 1), FAIL(EPERM), ALLOW};
static struct sock_filter tcp_peek_offset[] = {LOAD(nr), IS_ELSE(SYS_getsockopt, 5),
	LOAD(args[1]), IS_ELSE(SOL_SOCKET, 3), LOAD(args[2]), IS_ELSE(SO_PEEK_OFF, 1),
	FAIL(EOPNOTSUPP), ALLOW};
static struct sock_filter thread_pidfd[] = {LOAD(nr), IS_ELSE(NR_PIDFD_OPEN, 3), LOAD(args[1]),
	HAS_ELSE(O_EXCL, 1), FAIL(EINVAL), ALLOW};
static struct sock_filter registered_ring[] = {LOAD(nr), IS_ELSE(NR_IO_URING_REGISTER, 3),
	LOAD(args[1]), HAS_ELSE(USE_REGISTERED_RING, 1), FAIL(EINVAL), ALLOW};
static struct sock_filter noreplace[] = {LOAD(nr), IS_ELSE(SYS_renameat2, 3), LOAD(args[4]),
	HAS_ELSE(RENAME_NOREPLACE, 1), FAIL(EINVAL), ALLOW};
static struct sock_filter links[] = {LOAD(nr), IS_ELSE(SYS_linkat, 1), FAIL(EPERM), ALLOW};
static struct sock_filter openat2[] = {LOAD(nr), IS_ELSE(SYS_openat2, 1), FAIL(ENOSYS), ALLOW};
static struct sock_filter userfaultfd[] = {
	LOAD(nr), IS_ELSE(SYS_userfaultfd, 1), FAIL(EPERM), ALLOW};
static struct sock_filter deadly_userfaultfd[] = {
	LOAD(nr), IS_ELSE(SYS_userfaultfd, 1), KILL, ALLOW};
static struct sock_filter trapped_userfaultfd[] = {
	LOAD(nr), IS_ELSE(SYS_userfaultfd, 1), TRAP, ALLOW};
static struct sock_filter rseq_query[] = {LOAD(nr), IS_ELSE(SYS_ptrace, 3), LOAD(args[0]),
	IS_ELSE(GET_RSEQ_CONFIGURATION, 1), FAIL(EIO), ALLOW};

static const struct {
	const char *option;
	struct sock_fprog program;
} filters[] = {
	{"--no-kcmp", {COUNT(kcmp), kcmp}},
	{"--no-ptrace", {COUNT(ptrace), ptrace}},
	{"--no-attach", {COUNT(attach), attach}},
	{"--no-pidfd-open", {COUNT(pidfd_open), pidfd_open}},
	{"--no-setns", {COUNT(setns), setns}},
	{"--no-tcp-peek-offset", {COUNT(tcp_peek_offset), tcp_peek_offset}},
	{"--no-thread-pidfd", {COUNT(thread_pidfd), thread_pidfd}},
	{"--no-registered-ring", {COUNT(registered_ring), registered_ring}},
	{"--no-noreplace", {COUNT(noreplace), noreplace}},
	{"--no-links", {COUNT(links), links}},
	{"--no-openat2", {COUNT(openat2), openat2}},
	{"--no-userfaultfd", {COUNT(userfaultfd), userfaultfd}},
	{"--kill-userfaultfd", {COUNT(deadly_userfaultfd), deadly_userfaultfd}},
	{"--trap-userfaultfd", {COUNT(trapped_userfaultfd), trapped_userfaultfd}},
	{"--no-rseq-query", {COUNT(rseq_query), rseq_query}},
};

/* NULL: there is no such option. */
static const struct sock_fprog *find(const char *option)
{
	for (size_t i = 0; i < COUNT(filters); i++)
		if (!strcmp(option, filters[i].option))
			return &filters[i].program;
	return NULL;
}

int main(int argc, char **argv)
{
	const struct sock_fprog allow = {COUNT(all), all}, *program = &allow;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 77;
	for (argv++, argc--; argc > 0 && *argv[0] == '-'; argv++, argc--) {
		program = find(argv[0]);
		if (!program)
			return 2;
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program))
			return 77;
	}
	if (argc < 1)
		return 2;
	if (program == &allow && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program))
		return 77;
	execvp(argv[0], argv);
	perror(argv[0]);
	return 127;
}
