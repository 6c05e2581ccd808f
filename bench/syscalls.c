/*
 * syscalls - call getppid(2) over and over; prints nanoseconds a call.
 */
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/program.h"

#define CALLS (5 * 1000 * 1000)

int main(void)
{
	double start = seconds();

	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	printf("%.2f\n", (seconds() - start) * 1e9 / CALLS);
	return 0;
}
