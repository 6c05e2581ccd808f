/*
 * Timers into the plan of a new process: of timer_create(2), with the ids they had, and
 * of setitimer(2).
 */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "supervisor/state/restore_plan.h"

/* <linux/prctl.h> of kernel 6.15 */
#define PR_TIMER_CREATE_RESTORE_IDS     77
#define PR_TIMER_CREATE_RESTORE_IDS_OFF 0
#define PR_TIMER_CREATE_RESTORE_IDS_ON  1
#define PR_TIMER_CREATE_RESTORE_IDS_GET 2

/* Without that prctl, ids are reached by making and deleting timers one after the other. */
#define TIMER_ID_MAX 4096

/* struct sigevent as the kernel reads it. */
static uint64_t timer_event(struct restore_plan *p, const struct image_timer *t)
{
	struct sigevent event = {0};

	event.sigev_notify = t->notify;
	event.sigev_signo = t->signo;
	event.sigev_value.sival_ptr = (void *)t->sigval;
	event._sigev_un._tid = t->tid;
	return plan_data(&p->plan, &event, sizeof(event));
}

static void add_create(struct restore_plan *p, const struct image_timer *t, int id)
{
	int32_t wanted = id;

	BATCH_ADD(&p->rest, "create a timer", SYS_timer_create, t->clock, timer_event(p, t),
		plan_data(&p->plan, &wanted, sizeof(wanted)));
}

/* Whether @t is an interval timer whose signal was pending: it sends it anew. */
static bool is_of_timer(const struct image_pending *pending, const struct image_timer *t)
{
	siginfo_t info;

	memcpy(&info, pending->siginfo, sizeof(info));
	return info.si_code == SI_TIMER && info.si_timerid == t->id &&
	       info.si_signo == t->signo;
}

static bool fires_at_once(const struct restore_plan *p, const struct image_timer *t)
{
	const struct image_pending *pending;
	size_t count;

	pending = image_note_array(p->img, IMAGE_NOTE_PENDING, struct image_pending, &count);
	for (size_t i = 0; i < count && t->interval_ns; i++)
		if (is_of_timer(&pending[i], t))
			return true;
	return false;
}

const struct image_timer *restore_pending_timer(
	const struct restore_plan *p, const struct image_pending *pending)
{
	const struct image_timer *t;
	size_t count;

	t = image_note_array(p->img, IMAGE_NOTE_TIMERS, struct image_timer, &count);
	for (size_t i = 0; i < count; i++)
		if (is_of_timer(pending, &t[i]))
			return &t[i];
	return NULL;
}

static bool clock_tells_time(int clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
	       clock == CLOCK_TAI;
}

static void add_arm(struct restore_plan *p, const struct image_timer *t)
{
	bool absolute = clock_tells_time(t->clock);
	uint64_t value = t->value_ns, its[4];

	if (!value)
		return;
	/* Its signal was pending: it fires at once, and counts its overruns from the tick
	 * before on, as the kernel does until the signal is taken. */
	if (fires_at_once(p, t))
		value = absolute ? clock_ns(t->clock) + clocks_shift(&p->clocks, t->clock) +
					   value - t->interval_ns
				 : 1;
	else
		absolute = false;
	its[0] = t->interval_ns / 1000000000;
	its[1] = t->interval_ns % 1000000000;
	its[2] = value / 1000000000;
	its[3] = value % 1000000000;
	BATCH_ADD(&p->rest, "arm a timer", SYS_timer_settime, t->id,
		absolute ? TIMER_ABSTIME : 0, plan_data(&p->plan, its, sizeof(its)), 0);
}

static int compare_ids(const void *a, const void *b)
{
	const struct image_timer *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* A process's first timer has id 0, the next 1, and so on. */
static int add_timers_by_counting(
	struct restore_plan *p, const struct image_timer *t, size_t count, struct err *e)
{
	cleanup_free struct image_timer *sorted = xmalloc(count * sizeof(*sorted));
	int next = 0;

	memcpy(sorted, t, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_ids);
	for (size_t i = 0; i < count; i++) {
		if (sorted[i].id < next || sorted[i].id > TIMER_ID_MAX)
			return err_set(e, 0, "this kernel cannot create a timer with id %d",
				sorted[i].id);
		for (; next < sorted[i].id; next++) {
			add_create(p, &sorted[i], 0);
			BATCH_ADD(&p->rest, "delete a timer", SYS_timer_delete, next);
		}
		add_create(p, &sorted[i], 0);
		next++;
	}
	return 0;
}

int restore_plan_timers(struct restore_plan *p, struct err *e)
{
	bool by_id = prctl(PR_TIMER_CREATE_RESTORE_IDS, PR_TIMER_CREATE_RESTORE_IDS_GET, 0, 0,
			     0) >= 0;
	const struct image_timer *t;
	size_t count;

	t = image_note_array(p->img, IMAGE_NOTE_TIMERS, struct image_timer, &count);
	if (!count)
		return 0;
	if (!by_id && add_timers_by_counting(p, t, count, e))
		return -1;
	if (by_id) {
		BATCH_ADD(&p->rest, "choose timer ids", SYS_prctl, PR_TIMER_CREATE_RESTORE_IDS,
			PR_TIMER_CREATE_RESTORE_IDS_ON, 0, 0, 0);
		/* /proc/PID/timers shows the newest first. */
		for (size_t i = count; i-- > 0;)
			add_create(p, &t[i], t[i].id);
		BATCH_ADD(&p->rest, "choose timer ids", SYS_prctl, PR_TIMER_CREATE_RESTORE_IDS,
			PR_TIMER_CREATE_RESTORE_IDS_OFF, 0, 0, 0);
	}
	for (size_t i = 0; i < count; i++)
		add_arm(p, &t[i]);
	return 0;
}

void restore_plan_itimers(struct restore_plan *p)
{
	static const int which[3] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
	const struct image_process *ip = p->ip;

	for (int i = 0; i < 3; i++) {
		/* A timer whose signal is pending does not run until that is taken
		 * (posixtimer_rearm_itimer(), kernel/time/itimer.c). */
		uint64_t value = ip->itimer_value_us[i] || !ip->itimer_interval_us[i]
					 ? ip->itimer_value_us[i]
					 : 1;
		uint64_t timer[4] = {ip->itimer_interval_us[i] / 1000000,
			ip->itimer_interval_us[i] % 1000000, value / 1000000, value % 1000000};

		if (value)
			BATCH_ADD(&p->rest, "set an interval timer", SYS_setitimer, which[i],
				plan_data(&p->plan, timer, sizeof(timer)), 0);
	}
}
