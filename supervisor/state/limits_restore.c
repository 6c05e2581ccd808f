/*
 * limits_restore.c - limits are raised as far as allowed before anything is made, and set to
 * the program's in the end.
 */
#include "supervisor/state/limits_restore.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/limits.h"
#include "lib/notices.h"
#include "lib/util.h"
#include "supervisor/state/restore_options.h"

/* The highest that a process of @c had as its hard limit. */
static uint64_t highest_limit(const struct checkpoint *c, int resource)
{
	uint64_t most = 0;

	for (size_t i = 0; i < c->process_count; i++) {
		const struct image_process *ip;
		size_t count;

		ip = image_note_array(
			c->processes[i], IMAGE_NOTE_PROCESS, struct image_process, &count);
		if (count && ip->rlimit_max[resource] > most)
			most = ip->rlimit_max[resource];
	}
	return most;
}

/* Limits that what a restart makes could exceed. A user namespace keeps the limits of
 * its creator for good (set_userns_rlimit_max() in kernel/user_namespace.c). */
static const int widened[] = {RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_MEMLOCK,
	RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING};

/* The loader's own memory is in a process beside the program's, which may have all that it may.
 */
static uint64_t needed_limit(const struct checkpoint *c, int resource)
{
	return resource == RLIMIT_AS || resource == RLIMIT_DATA ? RLIM_INFINITY
								: highest_limit(c, resource);
}

void restore_limits_widen(struct restore_limits *l, const struct checkpoint *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(widened); i++) {
		struct rlimit *own = &l->own[widened[i]], most;
		uint64_t wanted = needed_limit(c, widened[i]);

		if (getrlimit(widened[i], own))
			BUG();
		most.rlim_max = own->rlim_max > wanted ? own->rlim_max : wanted;
		most.rlim_cur = most.rlim_max;
		if (!setrlimit(widened[i], &most))
			continue;
		/* Without the right to more. What needs more says so. */
		most.rlim_cur = most.rlim_max = own->rlim_max;
		(void)setrlimit(widened[i], &most);
	}
}

void restore_limits_put_back(const struct restore_limits *l)
{
	/* Lower than now: that is always allowed. */
	for (size_t i = 0; i < ARRAY_SIZE(widened); i++)
		(void)setrlimit(widened[i], &l->own[widened[i]]);
}

/* Most processes of a tree have the same limits, and the notice names none of them: once is enough. */
static void notice_lower(const struct new_process *np, int resource)
{
	static atomic_bool told[IMAGE_RLIMITS];

	if (np->o->notice && !atomic_exchange(&told[resource], true))
		notice_printf(np->o->notice,
			"the resource limit %s is lower here than where the program ran",
			limit_name(resource));
}

/* Only root can raise a hard limit: set the limit as high as possible. */
static int set_as_high_as_possible(pid_t pid, int resource, const struct rlimit *want)
{
	struct rlimit now;

	if (prlimit(pid, resource, NULL, &now))
		return -1;
	now.rlim_cur = want->rlim_cur < now.rlim_max ? want->rlim_cur : now.rlim_max;
	return prlimit(pid, resource, &now, NULL);
}

void restore_limits_set(struct new_process *np)
{
	for (int i = 0; i < IMAGE_RLIMITS; i++) {
		struct rlimit want = {np->ip->rlimit_cur[i], np->ip->rlimit_max[i]};

		if (!prlimit(np->process.pid, i, &want, NULL))
			continue;
		if (!set_as_high_as_possible(np->process.pid, i, &want))
			notice_lower(np, i);
		else if (np->o->notice)
			notice_printf(np->o->notice,
				"process %d: cannot set the resource limit %s: %s",
				np->process.vpid, limit_name(i), strerror(errno));
	}
}
