/*
 * forkexec - start /bin/true 500 times and wait for it; prints microseconds each.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/program.h"

#define TIMES 500

int main(void)
{
	double start = seconds();

	for (int i = 0; i < TIMES; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			return 1;
	}
	printf("%.1f\n", (seconds() - start) * 1e6 / TIMES);
	return 0;
}
