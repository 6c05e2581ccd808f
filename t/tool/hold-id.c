/*
 * hold-id ID - keep an id taken, as the id of a session whose leader has ended: it is in no
 * listing, and no process can get it. Prints "held", and waits to be ended. Takes the
 * capability to choose ids; without it the status is 77.
 */
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void __attribute__((noreturn)) lead(void)
{
	if (setsid() < 0)
		_exit(1);
	if (fork())
		_exit(0);
	/* The session keeps its id, the group goes with its only member. */
	if (setpgid(0, 0))
		_exit(1);
	puts("held");
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	pid_t id = argc > 1 ? atoi(argv[1]) : 0, made;
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&id,
		.set_tid_size = 1,
	};

	made = syscall(SYS_clone3, &args, sizeof(args));
	if (!made)
		lead();
	if (made < 0) {
		int status = errno == EPERM ? 77 : 1;

		perror("hold-id");
		return status;
	}
	return waitpid(made, NULL, 0) == made ? 0 : 1;
}
