/*
 * gpu_patience.c - whether a tree that did not come to rest is let run on for a while and
 * stopped again.
 */
#include "supervisor/tree/gpu_patience.h"

#include <time.h>

#include "lib/util.h"
#include "supervisor/split/lower_half.h"

/* At first; and later, when it has been seen how long the GPU takes if the program runs. */
#define FIRST_NS 500000000ull
#define LEAST_NS 50000000ull
/* Where that is not known, how long the program runs on. */
#define RUN_ON_NS 20000000ull

void patience_begin(struct freeze_patience *p, uint64_t total_ns, uint64_t deadline_ns)
{
	*p = (struct freeze_patience){.total_ns = total_ns, .least_ns = LEAST_NS};
	p->ns = total_ns < FIRST_NS ? total_ns : FIRST_NS;
	p->deadline_ns = clock_ns(CLOCK_MONOTONIC) + total_ns;
	if (deadline_ns && deadline_ns < p->deadline_ns)
		p->deadline_ns = deadline_ns;
}

static void let_run(struct freeze_patience *p)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);

	if (p->in_driver) {
		p->let_run = true;
		p->ns *= 2;
		sleep_ns(RUN_ON_NS);
		return;
	}
	/* With new work it may take as long again, and longer. */
	lower_await_rest(p->restless, p->deadline_ns);
	p->ns = 4 * (clock_ns(CLOCK_MONOTONIC) - began);
	p->least_ns += p->least_ns / 8;
	if (p->ns < p->least_ns)
		p->ns = p->least_ns;
}

bool patience_again(struct freeze_patience *p, struct err *e)
{
	uint64_t now;

	if (!p->restless)
		return false;
	if (clock_ns(CLOCK_MONOTONIC) < p->deadline_ns)
		let_run(p);
	now = clock_ns(CLOCK_MONOTONIC);
	if (now >= p->deadline_ns) {
		err_append(e, " (--drain-timeout: %.0f s)", p->total_ns / 1e9);
		return false;
	}
	if (p->ns > p->deadline_ns - now)
		p->ns = p->deadline_ns - now;
	return true;
}
