/*
 * timer - a signal every millisecond for two seconds while the program counts.
 *
 * Prints the 99th percentile of how late the handler ran (microseconds), and how far the
 * program counted (millions a second).
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/program.h"

#define PERIOD_NS 1000000
#define SIGNALS   2000

static uint64_t late[SIGNALS], first;
static volatile int seen;

/* A missed period counts for the signal that came in its place. */
static void on_signal(int signal, siginfo_t *info, void *context)
{
	static uint64_t due;
	uint64_t t = now();

	due = due ? due + PERIOD_NS * (1 + (uint64_t)info->si_overrun) : first;
	if (seen < SIGNALS)
		late[seen++] = t > due ? t - due : 0;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	uint64_t start = now(), count = 0;
	timer_t timer;

	first = start + PERIOD_NS;
	struct itimerspec when = {
		.it_interval = {0, PERIOD_NS},
		.it_value = {first / 1000000000, first % 1000000000},
	};
	if (sigaction(SIGRTMIN, &action, NULL) != 0 ||
		timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
		timer_settime(timer, TIMER_ABSTIME, &when, NULL) != 0) {
		perror("timer");
		return 1;
	}
	while (seen < SIGNALS)
		count++;
	double elapsed = (now() - start) * 1e-9;

	timer_delete(timer);
	qsort(late, SIGNALS, sizeof(*late), by_size);
	printf("%.1f %.1f\n", late[SIGNALS * 99 / 100] * 1e-3, count * 1e-6 / elapsed);
	return 0;
}
