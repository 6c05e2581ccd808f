/*
 * checkpoint_under_way.c - the state behind one lock, the functions of the thread that takes the
 * checkpoint, and functions for the event loop.
 */
#include "supervisor/run/checkpoint_under_way.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "lib/phase.h"
#include "lib/util.h"

/* A rate that is measured over less time than this tells little: the first chunks of all
 * threads are done at about the same moment. */
#define RATE_AFTER_NS 200000000ull

int under_way_begin(struct under_way *u, struct err *e)
{
	memset(u, 0, sizeof(*u));
	u->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (u->wake_fd < 0)
		return err_set(e, errno, "cannot create an eventfd");
	pthread_mutex_init(&u->lock, NULL);
	u->started_ns = clock_ns(CLOCK_MONOTONIC);
	return 0;
}

void under_way_end(struct under_way *u)
{
	close(u->wake_fd);
	pthread_mutex_destroy(&u->lock);
}

static void wake_waiter(struct under_way *u)
{
	uint64_t one = 1;

	/* Full after 2^64 of them. */
	(void)!write(u->wake_fd, &one, sizeof(one));
}

static void set_attached(struct under_way *u, bool attached)
{
	pthread_mutex_lock(&u->lock);
	u->attached = attached;
	pthread_mutex_unlock(&u->lock);
	wake_waiter(u);
}

void under_way_attach(struct under_way *u)
{
	set_attached(u, true);
}

void under_way_detach(struct under_way *u)
{
	set_attached(u, false);
}

static int tell_cancelled(const struct under_way *u, struct err *e)
{
	return err_set(e, 0, "it was cancelled: %s", u->why);
}

static int get_state(const struct under_way *u)
{
	return __atomic_load_n(&u->state, __ATOMIC_SEQ_CST);
}

int under_way_cancelled(struct under_way *u, struct err *e)
{
	return get_state(u) == UNDER_WAY_CANCELLED ? tell_cancelled(u, e) : 0;
}

int under_way_finally(struct under_way *u, struct err *e)
{
	int open = UNDER_WAY_OPEN;

	if (__atomic_compare_exchange_n(&u->state, &open, UNDER_WAY_FINAL, false,
		    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return 0;
	return open == UNDER_WAY_CANCELLED ? tell_cancelled(u, e) : 0;
}

void under_way_counts(struct under_way *u)
{
	__atomic_store_n(&u->done_bytes, 0, __ATOMIC_RELAXED);
	u->total_bytes = 0;
	u->write_ns = 0;
}

void under_way_writes(struct under_way *u, uint64_t total)
{
	u->done_before = __atomic_load_n(&u->done_bytes, __ATOMIC_RELAXED);
	u->total_bytes = total;
	u->write_ns = clock_ns(CLOCK_MONOTONIC);
}

static uint64_t rate_so_far(const struct under_way *u, uint64_t now)
{
	uint64_t done = __atomic_load_n(&u->done_bytes, __ATOMIC_RELAXED);
	uint64_t since = u->write_ns;

	if (!since || now < since + RATE_AFTER_NS)
		return 0;
	return (done - u->done_before) * 1e9 / (now - since);
}

int under_way_foresee(const struct under_way *u, uint64_t deadline_ns, struct err *e)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), speed = rate_so_far(u, now);
	uint64_t done = __atomic_load_n(&u->done_bytes, __ATOMIC_RELAXED);
	double left = now < deadline_ns ? (deadline_ns - now) / 1e9 : 0, needed;

	if (!speed || done >= u->total_bytes)
		return 0;
	needed = (u->total_bytes - done) / (double)speed + u->total_bytes * u->sync_s_per_byte;
	if (needed <= left)
		return 0;
	return err_set(e, 0,
		"it cannot be ready before the deadline: %.0f MiB of memory are still to be "
		"written, and at %.0f MiB/s, as up to now, it would take %.1f s more, but %.1f "
		"s are left",
		(u->total_bytes - done) / 0x1p20, speed / 0x1p20, needed, left);
}

void under_way_done(struct under_way *u)
{
	u->done = true;
	wake_waiter(u);
}

bool under_way_cancel(struct under_way *u, const char *why)
{
	int open = UNDER_WAY_OPEN;

	/* One thread cancels, and the other reads `why` behind the exchange only. */
	if (get_state(u) == UNDER_WAY_OPEN)
		u->why = why;
	return __atomic_compare_exchange_n(&u->state, &open, UNDER_WAY_CANCELLED, false,
		       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
	       open == UNDER_WAY_CANCELLED;
}

bool under_way_attached(struct under_way *u)
{
	bool attached;

	pthread_mutex_lock(&u->lock);
	attached = u->attached;
	pthread_mutex_unlock(&u->lock);
	return attached;
}

bool under_way_take_children(struct under_way *u)
{
	pthread_mutex_lock(&u->lock);
	if (!u->attached)
		return true;
	pthread_mutex_unlock(&u->lock);
	return false;
}

void under_way_leave_children(struct under_way *u)
{
	pthread_mutex_unlock(&u->lock);
}

static const char *phase_text(void)
{
	switch ((enum phase)phase_now) {
	case PHASE_FREEZE:
		return "stopping the program";
	case PHASE_DUMP:
		return "saving the program's state";
	case PHASE_WRITE:
	case PHASE_COPIES:
		return "writing memory";
	case PHASE_COMMIT:
		return "flushing it to disk";
	case PHASE_THAW:
		return "resuming the program";
	case PHASE_CHECK:
	case PHASE_CREATE:
	case PHASE_REBUILD:
	case PHASE_REGISTERS:
	case PHASE_LET_GO:
		return "trying a restart";
	case PHASE_NONE:
	case PHASES:
		break;
	}
	return "at work";
}

void under_way_look(const struct under_way *u, struct under_way_report *report)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	*report = (struct under_way_report){
		.phase = phase_text(),
		.elapsed_ns = now - u->started_ns,
		.done_bytes = __atomic_load_n(&u->done_bytes, __ATOMIC_RELAXED),
		.total_bytes = u->total_bytes,
		.rate = rate_so_far(u, now),
	};
}
