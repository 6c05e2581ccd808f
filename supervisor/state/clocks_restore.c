/*
 * clocks_restore.c - compares the clocks here with the clocks in the image, finds out whether a
 * time namespace can be made, and says what jumps where none can.
 */
#include "supervisor/state/clocks_restore.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/target/clone.h"

/* Whether what the program has seen of its clocks is ahead of ours, or is counted from another
 * start of a machine than ours. */
static int would_jump(const struct image_job *info, bool *jump, struct err *e)
{
	static const uint8_t unknown[16];
	struct clock_shifts here;
	uint8_t boot_id[16];

	clocks_boot_id(boot_id);
	if (clocks_of(getpid(), &here, e))
		return -1;
	*jump = !memcmp(boot_id, unknown, 16) || memcmp(boot_id, info->boot_id, 16) ||
		here.monotonic_ns != info->monotonic_shift_ns ||
		here.boottime_ns != info->boottime_shift_ns ||
		clock_ns(CLOCK_MONOTONIC) < info->monotonic_ns ||
		clock_ns(CLOCK_BOOTTIME) < info->boottime_ns;
	return 0;
}

/* Whether clocks can be set. -1 and errno if not. */
static int try_to_set(const struct clock_shifts *shifts, uint64_t clone_flags)
{
	pid_t pid = clone_process(clone_flags, 0);
	int status;

	if (!pid)
		_exit(clocks_set(shifts) ? errno : 0);
	if (pid < 0)
		return -1;
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
	return errno ? -1 : 0;
}

/* In a user namespace there is but our own user. */
static bool is_ours_alone(const struct checkpoint *c)
{
	const struct image_job_process *p;
	size_t count;

	p = image_note_array(c->job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	for (size_t i = 0; i < count; i++)
		if (p[i].uid != geteuid())
			return false;
	return true;
}

/* Find namespaces in which clocks can be set. -1 and errno if there are none. A user
 * namespace is the last resort: in it a program would lose its privileges. */
static int choose_namespaces(const struct checkpoint *c, struct restore_clocks *out)
{
	int error;

	if (!try_to_set(&out->shifts, 0))
		return 0;
	error = errno;
	if ((error == EPERM || error == EACCES) && !procfs_has_capability(CAP_SYS_ADMIN) &&
		is_ours_alone(c)) {
		out->needs_user_namespace = true;
		return try_to_set(&out->shifts, CLONE_NEWUSER);
	}
	errno = error;
	return -1;
}

static char *jump_text(int64_t ns)
{
	return xasprintf("%lld s %s", llabs(ns / 1000000000), ns < 0 ? "back" : "forward");
}

static void notice_clock_jump(
	const struct restore_options *o, const struct clock_shifts *leap, int error)
{
	cleanup_free char *monotonic = jump_text(leap->monotonic_ns);
	cleanup_free char *boottime = jump_text(leap->boottime_ns);
	cleanup_free char *line = xasprintf(
		"the program's clocks jump, as no time namespace can be made here (%s): "
		"CLOCK_MONOTONIC %s, CLOCK_BOOTTIME %s. Timers, and calls that wait until a "
		"time of these clocks, have been moved by as much. But where the program has "
		"noted such a time for later, as event loops do, it will %s",
		error == EINVAL ? "the kernel has none" : strerror(error), monotonic, boottime,
		leap->monotonic_ns < 0 ? "wait for that much longer" : "find that it is over");

	if (o->notice)
		o->notice(line);
}

int restore_clocks_choose(const struct checkpoint *c, const struct restore_options *o,
	struct restore_clocks *out, struct err *e)
{
	const struct image_job *info = c->info;
	bool jump;
	int error;

	memset(out, 0, sizeof(*out));
	if (o->freeze_clock == FREEZE_CLOCK_NEVER)
		return 0;
	if (would_jump(info, &jump, e))
		return -1;
	if (o->freeze_clock == FREEZE_CLOCK_AUTO && !jump)
		return 0;
	if (clocks_plan(info->monotonic_ns, info->boottime_ns, &out->shifts, e))
		return -1;
	error = choose_namespaces(c, out) ? errno : 0;
	out->continued = !error;
	if (!error && o->freeze_clock == FREEZE_CLOCK_AUTO && o->notice)
		o->notice("this is another machine, or it has been rebooted: the program's "
			  "monotonic clocks continue from the checkpoint");
	if (!error)
		return 0;
	if (o->freeze_clock == FREEZE_CLOCK_ALWAYS)
		return err_set(e, error == EINVAL ? 0 : error,
			error == EINVAL
				? "cannot let the clocks continue from the checkpoint: this "
				  "kernel has no time namespaces"
				: "cannot let the clocks continue from the checkpoint");
	out->needs_user_namespace = false;
	out->deadline_shift.monotonic_ns =
		(int64_t)(clock_ns(CLOCK_MONOTONIC) - info->monotonic_ns);
	out->deadline_shift.boottime_ns =
		(int64_t)(clock_ns(CLOCK_BOOTTIME) - info->boottime_ns);
	notice_clock_jump(o, &out->deadline_shift, error);
	return 0;
}
