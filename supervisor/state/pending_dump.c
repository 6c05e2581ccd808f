/*
 * pending_dump.c - signals that wait.
 *
 * To find one, the kernel counts through those before it (ptrace_peek_siginfo()), however many
 * are asked for at once: of ten times as many, all take a hundred times as long. What would
 * take too long is found out before, from how long the last one takes.
 */
#include <string.h>
#include <time.h>

#include "supervisor/state/dump.h"

#define AT_ONCE 64
#define FEW     4096 /* that many take some milliseconds */
#define LOOKS   3    /* the first finds cold caches, any may be interrupted */

#define PATIENCE_NS 5000000000ull

struct queue {
	struct tracee *tracee;
	bool shared; /* the process's, else the thread's */
};

/* Whether there are at least @count. */
static int queue_holds(const struct queue *q, uint64_t count, bool *yes, struct err *e)
{
	siginfo_t info;
	int n = tracee_pending(q->tracee, q->shared, count - 1, &info, 1, e);

	*yes = n > 0;
	return n < 0 ? -1 : 0;
}

/* @count: so many are known to be there; set to how many there are. */
static int count_all(const struct queue *q, uint64_t *count, struct err *e)
{
	uint64_t there = *count, missing = 0;

	while (!missing || missing - there > 1) {
		uint64_t next = missing ? (there + missing) / 2 : 2 * there;
		bool yes;

		if (queue_holds(q, next, &yes, e))
			return -1;
		*(yes ? &there : &missing) = next;
	}
	*count = there;
	return 0;
}

static int time_of_last(const struct queue *q, uint64_t count, uint64_t *ns, struct err *e)
{
	*ns = UINT64_MAX;
	for (int i = 0; i < LOOKS; i++) {
		uint64_t begin = clock_ns(CLOCK_MONOTONIC), took;
		bool yes;

		if (queue_holds(q, count, &yes, e))
			return -1;
		took = clock_ns(CLOCK_MONOTONIC) - begin;
		if (took < *ns)
			*ns = took;
	}
	return 0;
}

static int too_many(uint64_t count, uint64_t ns, struct err *e)
{
	return err_set(e, 0,
		"%llu signals are queued for it, and the kernel would take about %llu seconds "
		"to show them, or more on a busy machine, during which the program is stopped: "
		"let the program take them first, or allow twice as much time "
		"(trecr-ckpt --timeout)",
		(unsigned long long)count, (unsigned long long)(ns / 1000000000 + 1));
}

static uint64_t limit_of(const struct dump *d)
{
	return d->deadline_ns ? d->deadline_ns : clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
}

/* What all of @count take, when @known of them have taken so long since @begin: on a busy machine more
 * than the kernel's work. */
static uint64_t time_by_now(uint64_t count, uint64_t known, uint64_t begin)
{
	double more = (double)count / known;

	return (clock_ns(CLOCK_MONOTONIC) - begin) * more * more;
}

/* @known have been read since @begin. */
static int check_time(const struct dump *d, const struct queue *q, uint64_t known,
	uint64_t begin, uint64_t limit, struct err *e)
{
	uint64_t by_now, count = known, ns;

	if (count_all(q, &count, e) || time_of_last(q, count, &ns, e))
		return -1;
	ns = ns * count / 2;
	if (clock_ns(CLOCK_MONOTONIC) + ns <= limit)
		return 0;
	by_now = time_by_now(count, known, begin);
	return too_many(count, ns > by_now ? ns : by_now, e);
}

static void add_pending(struct buf *out, int32_t tid, const siginfo_t *info)
{
	struct image_pending p = {.tid = tid};

	_Static_assert(sizeof(*info) == sizeof(p.siginfo), "siginfo");
	/* A process that is to be stopped comes back stopped. */
	if (info->si_signo == SIGSTOP)
		return;
	memcpy(p.siginfo, info, sizeof(p.siginfo));
	buf_push(out, struct image_pending, &p);
}

static int add_queue(const struct dump *d, const struct queue *q, int32_t tid, struct buf *out,
	struct err *e)
{
	uint64_t at = 0, limit = limit_of(d), begin = clock_ns(CLOCK_MONOTONIC);
	siginfo_t info[AT_ONCE];
	int n;

	while ((n = tracee_pending(q->tracee, q->shared, at, info, AT_ONCE, e)) > 0) {
		bool many = at + n >= FEW;

		for (int i = 0; i < n; i++)
			add_pending(out, tid, &info[i]);
		if (many && (at < FEW || clock_ns(CLOCK_MONOTONIC) > limit) &&
			check_time(d, q, at + n, begin, limit, e))
			return -1;
		at += n;
	}
	return n;
}

int dump_pending(struct dump *d, struct buf *out, struct err *e)
{
	struct process *p = d->process;

	for (size_t i = 0; i < p->thread_count; i++) {
		struct queue q = {&p->threads[i].tracee, false};

		if (add_queue(d, &q, p->threads[i].vtid, out, e))
			return -1;
	}
	return add_queue(d, &(struct queue){&p->threads[0].tracee, true}, 0, out, e);
}
