/*
 * gpu_wait.c - whether a tree whose GPUs have not finished their work is resumed for a while and
 * stopped again.
 */
#include "supervisor/tree/gpu_wait.h"

#include <time.h>

#include "lib/util.h"
#include "supervisor/split/lower_half.h"

/* At first; and later, when it has been seen how long the GPU takes if the program runs. */
#define FIRST_NS 500000000ull
#define LEAST_NS 50000000ull
/* Where that is not known, how long the program runs on. */
#define RUN_ON_NS 20000000ull
/* While something is half done that nobody tells the end of: pauses that double, to the last. */
#define FIRST_PAUSE_NS 10000000ull
#define LAST_PAUSE_NS  320000000ull

void gpu_wait_begin(struct gpu_wait *w, uint64_t total_ns, uint64_t deadline_ns)
{
	*w = (struct gpu_wait){
		.total_ns = total_ns, .least_ns = LEAST_NS, .pause_ns = FIRST_PAUSE_NS};
	w->ns = total_ns < FIRST_NS ? total_ns : FIRST_NS;
	w->deadline_ns = clock_ns(CLOCK_MONOTONIC) + total_ns;
	if (deadline_ns && deadline_ns < w->deadline_ns)
		w->deadline_ns = deadline_ns;
}

static void pause_for(struct gpu_wait *w, uint64_t left_ns)
{
	sleep_ns(w->pause_ns < left_ns ? w->pause_ns : left_ns);
	if (w->pause_ns < LAST_PAUSE_NS)
		w->pause_ns *= 2;
}

static void let_run(struct gpu_wait *w)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);

	if (w->pending) {
		pause_for(w, w->deadline_ns > began ? w->deadline_ns - began : 0);
		return;
	}
	if (w->in_driver) {
		w->let_run = true;
		w->ns *= 2;
		sleep_ns(RUN_ON_NS);
		return;
	}
	/* With new work it may take as long again, and longer. */
	lower_await_rest(w->restless, w->deadline_ns);
	w->ns = 4 * (clock_ns(CLOCK_MONOTONIC) - began);
	w->least_ns += w->least_ns / 8;
	if (w->ns < w->least_ns)
		w->ns = w->least_ns;
}

bool gpu_wait_again(struct gpu_wait *w, struct err *e)
{
	uint64_t now;

	if (!w->restless)
		return false;
	if (clock_ns(CLOCK_MONOTONIC) < w->deadline_ns)
		let_run(w);
	now = clock_ns(CLOCK_MONOTONIC);
	if (now >= w->deadline_ns) {
		err_append(e, " (--drain-timeout: %.0f s)", w->total_ns / 1e9);
		return false;
	}
	if (w->ns > w->deadline_ns - now)
		w->ns = w->deadline_ns - now;
	return true;
}
