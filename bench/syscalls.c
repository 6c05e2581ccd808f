/*
 * syscalls - call getppid(2) over and over; prints nanoseconds a call.
 */
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALLS (5 * 1000 * 1000)

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(void)
{
	double start = seconds();

	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	printf("%.2f\n", (seconds() - start) * 1e9 / CALLS);
	return 0;
}
