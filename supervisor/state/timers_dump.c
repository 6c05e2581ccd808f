/*
 * Timers of timer_create(2) and setitimer(2), in step with the signals that they have sent: a
 * timer runs on while its process is frozen.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "supervisor/state/dump.h"
#include "supervisor/target/remote_query.h"

static pid_t virtual_tid(struct process *p, pid_t tid)
{
	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].tracee.tid == tid)
			return p->threads[i].vtid;
	return 0;
}

/*
 * A timer is four lines in /proc/PID/timers (man proc_pid_timers):
 *	ID: 1
 *	signal: 60/00007fff86e452a8
 *	notify: signal/pid.2634
 *	ClockID: 0
 */
static int parse_timer(
	struct process *p, const char *text, struct image_timer *t, struct err *e)
{
	char notify[16], target[8];
	unsigned long value;
	int id, signo, clock;
	pid_t pid;

	if (sscanf(text, "ID: %d\nsignal: %d/%lx\nnotify: %15[^/]/%7[^.].%d\nClockID: %d", &id,
		    &signo, &value, notify, target, &pid, &clock) != 7)
		return err_set(e, 0, "cannot parse /proc/%d/timers", p->pid);
	memset(t, 0, sizeof(*t));
	t->id = id;
	t->clock = clock;
	t->signo = signo;
	t->sigval = value;
	t->notify = !strcmp(notify, "none") ? SIGEV_NONE : SIGEV_SIGNAL;
	if (!strcmp(target, "tid")) {
		t->notify |= SIGEV_THREAD_ID;
		t->tid = virtual_tid(p, pid);
		if (!t->tid)
			return err_set(e, 0,
				"timer %d of process %d is for a thread that has ended", id,
				p->pid);
	}
	return 0;
}

/* A clock of CPU time (include/linux/posix-timers_types.h): of the process or thread whose id,
 * complemented, is in the upper bits; 0 stands for the process that made the timer. */
#define CPU_CLOCK_THREAD 6 /* per thread, as the scheduler counts */
static int32_t cpu_clock(pid_t tid)
{
	return (int32_t)((~(uint32_t)tid << 3) | CPU_CLOCK_THREAD);
}

/* Nothing tells which thread has made a timer. For a timer that counts the CPU time of its maker,
 * the maker is found otherwise: there is but one thread, or the timer signals a thread, as is
 * usual, its maker. */
static int find_clock(const struct process *p, struct image_timer *t, struct err *e)
{
	if (t->clock != cpu_clock(0))
		return 0;
	if (t->notify & SIGEV_THREAD_ID)
		t->clock = cpu_clock(t->tid);
	else if (p->thread_count > 1 || p->leader_ended)
		return err_set(e, 0,
			"timer %d of process %d (%s) counts the CPU time of one of its threads "
			"(CLOCK_THREAD_CPUTIME_ID), and the kernel does not show which one",
			t->id, p->pid, p->comm);
	return 0;
}

static uint64_t to_ns(const struct timespec *ts)
{
	return ts->tv_sec * 1000000000ull + ts->tv_nsec;
}

static int read_timer(struct remote *r, struct image_timer *t, struct err *e)
{
	struct itimerspec its;
	struct remote_query q[] = {
		{.nr = SYS_timer_gettime,
			.args = {t->id},
			.out_arg = 2,
			.out = &its,
			.size = sizeof(its)},
		{.nr = SYS_timer_getoverrun, .args = {t->id}},
	};

	if (remote_query(r, q, ARRAY_SIZE(q), e))
		return -1;
	if (q[0].result < 0)
		return err_set(e, -q[0].result, "cannot read timer %d", t->id);
	t->value_ns = to_ns(&its.it_value);
	t->interval_ns = to_ns(&its.it_interval);
	t->overrun = q[1].result > 0 ? q[1].result : 0;
	return 0;
}

void ask_interval_timers(struct remote_query *q, struct interval_timer *timer)
{
	for (int i = 0; i < INTERVAL_TIMERS; i++)
		q[i] = (struct remote_query){.nr = SYS_getitimer,
			.args = {i},
			.out_arg = 2,
			.out = &timer[i],
			.size = sizeof(timer[i])};
}

static int take_interval_timers(const struct remote_query *q,
	const struct interval_timer *timer, struct process_timers *out, struct err *e)
{
	for (int i = 0; i < INTERVAL_TIMERS; i++) {
		if (q[i].result < 0)
			return err_set(e, -q[i].result, "cannot read an interval timer");
		out->interval_us[i] = timer[i].interval_s * 1000000 + timer[i].interval_us;
		out->value_us[i] = timer[i].value_s * 1000000 + timer[i].value_us;
	}
	return 0;
}

static int read_interval_timers(struct remote *r, struct process_timers *out, struct err *e)
{
	struct interval_timer timer[INTERVAL_TIMERS];
	struct remote_query q[INTERVAL_TIMERS];

	ask_interval_timers(q, timer);
	return remote_query(r, q, INTERVAL_TIMERS, e) || take_interval_timers(q, timer, out, e)
		       ? -1
		       : 0;
}

/* Those of timer_create(2). */
static int read_timers(
	struct dump *d, struct remote *r, struct process_timers *out, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/timers", d->process->task);
	cleanup_free char *text = NULL;
	size_t len;

	out->posix.len = 0;
	if (read_file(path, &text, &len, e))
		return -1;
	for (char *p = strstr(text, "ID: "); p; p = strstr(p, "\nID: ")) {
		struct image_timer t;

		p += *p == '\n';
		if (parse_timer(d->process, p, &t, e) || find_clock(d->process, &t, e) ||
			read_timer(r, &t, e))
			return -1;
		buf_push(&out->posix, struct image_timer, &t);
	}
	return 0;
}

static bool may_expire(const struct process_timers *timers)
{
	for (size_t i = 0; i < buf_count(&timers->posix, struct image_timer); i++)
		if (buf_at(&timers->posix, struct image_timer, i)->value_ns)
			return true;
	return timers->value_us[0] || timers->value_us[1] || timers->value_us[2];
}

/* A timer that has expired has less than nothing left: it has stopped, or begun anew. */
static bool has_expired(uint64_t before, uint64_t after)
{
	return before && (!after || after > before);
}

/* The signal of one timer: a timer_create(2) timer has a signal of its own in the queue, told
 * by its id; a setitimer(2) timer shares it with anything else that sends the signal. */
static bool is_pending(const struct buf *pending, int signo, const int *timer)
{
	for (size_t i = 0; i < buf_count(pending, struct image_pending); i++) {
		siginfo_t info;

		memcpy(&info, buf_at(pending, struct image_pending, i)->siginfo, sizeof(info));
		if (info.si_signo == signo &&
			(!timer || (info.si_code == SI_TIMER && info.si_timerid == *timer)))
			return true;
	}
	return false;
}

/*
 * Which of two readings goes with the signals that were read in between. A timer that expires
 * between the readings did so before the signals were read if its signal is among them: then
 * what is left after it counts, else what was left before, and it will expire again.
 */
static void choose_reading(struct process_timers *before, const struct process_timers *after,
	const struct buf *pending)
{
	static const int signals[3] = {SIGALRM, SIGVTALRM, SIGPROF};

	for (size_t i = 0; i < buf_count(&before->posix, struct image_timer); i++) {
		struct image_timer *t = buf_at(&before->posix, struct image_timer, i);
		const struct image_timer *later = buf_at(&after->posix, struct image_timer, i);

		if (has_expired(t->value_ns, later->value_ns) &&
			((t->notify & ~SIGEV_THREAD_ID) == SIGEV_NONE ||
				is_pending(pending, t->signo, &t->id)))
			*t = *later;
	}
	for (int i = 0; i < 3; i++)
		if (has_expired(before->value_us[i], after->value_us[i]) &&
			is_pending(pending, signals[i], NULL))
			before->value_us[i] = after->value_us[i];
}

int dump_timers_and_pending(struct dump *d, struct remote *r,
	const struct remote_query *answers, const struct interval_timer *timers,
	struct process_timers *out, struct err *e)
{
	cleanup_buf struct buf pending = {0};
	struct process_timers after = {0};
	int failed;

	failed = take_interval_timers(answers, timers, out, e) || read_timers(d, r, out, e) ||
		 dump_pending(d, &pending, e) ||
		 (may_expire(out) &&
			 (read_timers(d, r, &after, e) || read_interval_timers(r, &after, e)));
	if (!failed && may_expire(out))
		choose_reading(out, &after, &pending);
	buf_free(&after.posix);
	if (failed)
		return -1;
	image_writer_note(d->writer, IMAGE_NOTE_TIMERS, out->posix.data, out->posix.len);
	image_writer_note(d->writer, IMAGE_NOTE_PENDING, pending.data, pending.len);
	return 0;
}
