/*
 * confine [--no-kcmp] COMMAND [ARG...] - run a command under a seccomp filter, as containers
 * run all of theirs under one: that allows everything, or all but kcmp(2) (EPERM). Status 77
 * where there are no filters.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	bool no_kcmp = argc > 1 && !strcmp(argv[1], "--no-kcmp");
	struct sock_fprog program = {
		.len = no_kcmp ? 4 : 1, .filter = no_kcmp ? code : code + 3};

	argv += no_kcmp;
	argc -= no_kcmp;
	if (argc < 2)
		return 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
