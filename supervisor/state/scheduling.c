/*
 * scheduling.c - read from outside, and set from outside, step by step, so that no step needs
 * what another has taken away.
 */
#include "supervisor/state/scheduling.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"

#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_CLASS_SHIFT 13

/* <linux/sched.h> of kernel 5.3; glibc 2.41 has it, too */
#ifndef SCHED_FLAG_UTIL_CLAMP
#define SCHED_FLAG_UTIL_CLAMP 0x60
#endif

/* struct sched_attr of <linux/sched/types.h>, which old headers lack. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
};

static int get_attributes(pid_t tid, struct attributes *a)
{
	memset(a, 0, sizeof(*a));
	return syscall(SYS_sched_getattr, tid, a, sizeof(*a), 0);
}

/* Of the ordinary policies it is the time slice (kernel 6.12): none of the thread's own when it
 * is the same as ours. */
static bool has_default_slice(const struct attributes *a)
{
	struct attributes mine;

	if (a->policy != SCHED_OTHER && a->policy != SCHED_BATCH && a->policy != SCHED_IDLE)
		return false;
	return !get_attributes(0, &mine) && mine.runtime == a->runtime;
}

/* Of a thread that has never set its I/O priority, kernels such as 5.10 show a level without a class,
 * which they do not take. */
static bool has_class(int ioprio)
{
	return ioprio >> IOPRIO_CLASS_SHIFT; /* IOPRIO_CLASS_NONE is 0 */
}

int scheduling_read(pid_t tid, struct image_thread *t, struct err *e)
{
	struct attributes a;
	int ioprio;

	if (get_attributes(tid, &a))
		return err_set(e, errno, "cannot read the scheduling of thread %d", tid);
	t->sched_policy = a.policy;
	t->sched_flags = a.flags;
	t->sched_priority = a.priority;
	t->sched_runtime = has_default_slice(&a) ? 0 : a.runtime;
	t->sched_deadline = a.deadline;
	t->sched_period = a.period;
	t->util_min = a.util_min;
	t->util_max = a.util_max;
	if (sched_getaffinity(tid, sizeof(t->affinity), (cpu_set_t *)t->affinity))
		return err_set(e, errno, "cannot read the CPU affinity of thread %d", tid);
	/* sched_getattr tells it for some policies only. */
	errno = 0;
	t->nice = getpriority(PRIO_PROCESS, tid);
	if (errno)
		return err_set(e, errno, "cannot read the nice value of thread %d", tid);
	ioprio = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, tid);
	t->ioprio = ioprio < 0 || !has_class(ioprio) ? 0 : ioprio;
	return 0;
}

/* Processors that are not here are left out; with none left, all are as good. */
static int set_affinity(pid_t tid, const struct image_thread *t)
{
	cpu_set_t possible, wanted;

	if (sched_getaffinity(0, sizeof(possible), &possible))
		return 0;
	memcpy(&wanted, t->affinity, sizeof(wanted));
	CPU_AND(&wanted, &wanted, &possible);
	return CPU_COUNT(&wanted) ? sched_setaffinity(tid, sizeof(wanted), &wanted) : 0;
}

static int set_attributes(pid_t tid, const struct image_thread *t, bool nice_is_set)
{
	struct attributes a = {
		.size = sizeof(a),
		.policy = t->sched_policy,
		.flags = t->sched_flags,
		.nice = t->nice,
		.priority = t->sched_priority,
		.runtime = t->sched_runtime,
		.deadline = t->sched_deadline,
		.period = t->sched_period,
	};
	struct attributes now;

	/* One that may not be set must not keep the others from being set. */
	if (!nice_is_set)
		a.nice = getpriority(PRIO_PROCESS, tid);
	/* A kernel without utilization clamps refuses all of them. */
	if (!get_attributes(tid, &now) &&
		(now.util_min != t->util_min || now.util_max != t->util_max)) {
		a.flags |= SCHED_FLAG_UTIL_CLAMP;
		a.util_min = t->util_min;
		a.util_max = t->util_max;
	}
	return syscall(SYS_sched_setattr, tid, &a, 0);
}

/* A thread without a class of its own has got one where the program is brought back under ionice(1). */
static int set_ioprio(pid_t tid, const struct image_thread *t)
{
	int wanted = has_class(t->ioprio) ? t->ioprio : 0;
	int now = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, tid);

	if (!wanted && (now < 0 || !has_class(now)))
		return 0;
	return syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, wanted);
}

void scheduling_set(pid_t tid, const struct image_thread *t,
	void (*notice)(void *arg, const char *line), void *arg)
{
	static const char *const what[] = {
		"CPU affinity", "nice value", "scheduling", "I/O priority"};
	int errors[ARRAY_SIZE(what)] = {0};

	if (set_affinity(tid, t))
		errors[0] = errno;
	if (setpriority(PRIO_PROCESS, tid, t->nice))
		errors[1] = errno;
	if (set_attributes(tid, t, !errors[1]))
		errors[2] = errno;
	if (set_ioprio(tid, t))
		errors[3] = errno;
	for (size_t i = 0; i < ARRAY_SIZE(what); i++) {
		cleanup_free char *line = NULL;

		if (!errors[i])
			continue;
		line = xasprintf("cannot set the %s of thread %d: %s", what[i], t->tid,
			strerror(errors[i]));
		notice(arg, line);
	}
}
