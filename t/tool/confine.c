/*
 * confine [--no-kcmp | --no-tcp-peek-offset] COMMAND [ARG...] - run a command under a seccomp
 * filter, as containers run all of theirs under one: that allows everything, or all but kcmp(2)
 * (EPERM), or all but to ask for SO_PEEK_OFF (EOPNOTSUPP, which TCP says before Linux 6.9). Status
 * 77 where there are no filters.
 */
#include <errno.h>
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
#define FAIL(code)              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code))
#define ALLOW                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter all[] = {ALLOW};
static struct sock_filter no_kcmp[] = {LOAD(nr), IS_ELSE(SYS_kcmp, 1), FAIL(EPERM), ALLOW};
static struct sock_filter no_peek_offset[] = {LOAD(nr), IS_ELSE(SYS_getsockopt, 5),
	LOAD(args[1]), IS_ELSE(SOL_SOCKET, 3), LOAD(args[2]), IS_ELSE(SO_PEEK_OFF, 1),
	FAIL(EOPNOTSUPP), ALLOW};

int main(int argc, char **argv)
{
	struct sock_fprog program = {COUNT(all), all};

	if (argc > 1 && !strcmp(argv[1], "--no-kcmp"))
		program = (struct sock_fprog){COUNT(no_kcmp), no_kcmp};
	if (argc > 1 && !strcmp(argv[1], "--no-tcp-peek-offset"))
		program = (struct sock_fprog){COUNT(no_peek_offset), no_peek_offset};
	argv += program.filter != all;
	argc -= program.filter != all;
	if (argc < 2)
		return 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
