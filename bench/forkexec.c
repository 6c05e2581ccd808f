/*
 * forkexec - start /bin/true 500 times and wait for it; prints microseconds each.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMES 500

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

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
