/* Not a test: what a call costs. Run natively and split, the difference is the crossing's.
 * Prints nanoseconds: a call, a thread's first call, the process's first call. */
#include <pthread.h>
#include <time.h>

#include "t/split/setup.h"

#define CALLS   20000000
#define THREADS 200

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double first;

static void *one_call(void *argument)
{
	double start = now();
	int version;

	cuDriverGetVersion(&version);
	first += now() - start;
	return NULL;
}

int main(void)
{
	double start = now(), process, best = 1e9;
	int version;

	cuDriverGetVersion(&version);
	process = now() - start;
	for (int round = 0; round < 5; round++) {
		start = now();
		for (int i = 0; i < CALLS / 5; i++)
			cuDriverGetVersion(&version);
		if ((now() - start) / (CALLS / 5) < best)
			best = (now() - start) / (CALLS / 5);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, one_call, NULL);
		pthread_join(thread, NULL);
	}
	printf("call %.1f ns, thread's first %.0f us, process's first %.0f us\n", best,
		first / THREADS / 1000, process / 1000);
	return 0;
}
