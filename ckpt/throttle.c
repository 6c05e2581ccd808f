/*
 * throttle.c - each thread reserves its time in a common schedule, and sleeps until then.
 */
#include "ckpt/throttle.h"

#include <stddef.h>
#include <time.h>

#include "lib/util.h"

#define ASK_NS 50000000ull

/* When these bytes may be written; what is not used of the rate is lost. */
static uint64_t take_turn(struct throttle *t, uint64_t bytes)
{
	uint64_t took = bytes * 1e9 / t->rate, next, from;

	next = __atomic_load_n(&t->next_ns, __ATOMIC_RELAXED);
	do {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		from = next > now ? next : now;
	} while (!__atomic_compare_exchange_n(
		&t->next_ns, &next, from + took, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return from;
}

int throttle_wait(struct throttle *t, uint64_t bytes, int (*cancelled)(void *, struct err *),
	void *context, struct err *e)
{
	uint64_t turn, now;

	if (!t->rate || !bytes)
		return 0;
	turn = take_turn(t, bytes);
	while ((now = clock_ns(CLOCK_MONOTONIC)) < turn) {
		uint64_t left = turn - now < ASK_NS ? turn - now : ASK_NS;

		if (cancelled && cancelled(context, e))
			return -1;
		sleep_ns(left);
	}
	return 0;
}
