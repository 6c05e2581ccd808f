/*
 * fork_snapshot.c - whether a copy is worth its time, and the copies of all processes.
 */
#include "supervisor/run/fork_snapshot.h"

#include "lib/notices.h"
#include "supervisor/memory/private_pages.h"
#include "supervisor/split/device_snapshot.h"
#include "supervisor/target/process_copy.h"

/* To fork takes time for each page that there is, and each that is written to meanwhile costs a
 * fault: with less than this to be written the program waits shorter for that
 * (doc/decisions/snapshot.md). */
#define LITTLE       (4ull << 20)
#define LITTLE_PARTS 64 /* and this part of what is available */

static bool is_much(const struct dump *d, uint64_t *all)
{
	uint64_t changed = private_pages_expected(d);

	*all = changed;
	for (size_t i = 0; i < buf_count(&d->copied_runs, struct block_run); i++) {
		const struct block_run *run = buf_at(&d->copied_runs, struct block_run, i);

		*all += run->size;
		changed += run->clean ? 0 : run->size;
	}
	return changed > LITTLE + *all / LITTLE_PARTS;
}

static bool adopts_any(const struct tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->processes[i]->adopts)
			return true;
	return false;
}

static int write_at_once(struct dump *d, struct err *e)
{
	if (private_pages_finish(d, e))
		return -1;
	buf_add(&d->runs, d->copied_runs.data, d->copied_runs.len);
	d->copied_runs.len = 0;
	return 0;
}

/* Each page may be written to before it is saved. */
static struct process *copy_in_room(struct dump *d, uint64_t size, uint64_t *room,
	const struct tree *tree, pid_t reaper, struct err *why)
{
	struct process *copy;

	if (size > *room) {
		err_set(why, 0,
			"a copy could need more memory than it may take (--fork-limit sets how "
			"much)");
		return NULL;
	}
	copy = copy_make(d->process, reaper, adopts_any(tree), &d->vmas, why);
	if (copy)
		*room -= size;
	return copy;
}

int fork_snapshot_make(struct dump *d, bool wanted, uint64_t *room, const struct tree *tree,
	pid_t reaper, struct err *e)
{
	struct process *p = d->process;
	struct err why = ERR_INIT;
	uint64_t size;

	wanted = wanted && is_much(d, &size);
	if (wanted)
		d->copy = copy_in_room(d, size, room, tree, reaper, &why);
	if (d->copy)
		return 0;
	if (p->cave_lost) {
		*e = why;
		return -1;
	}
	if (wanted)
		notice_add("process %d (%s) was stopped while its memory was written: %s",
			p->pid, p->comm, why.msg);
	return write_at_once(d, e);
}

void fork_snapshot_copy_devices(struct dump *d, bool wanted)
{
	struct err why = ERR_INIT;

	if (wanted && d->device_runs.len)
		d->device_snapshot = device_snapshot_make(d->process, &d->device_runs, &why);
	if (d->device_snapshot)
		return;
	if (wanted && d->device_runs.len)
		notice_add("process %d (%s) was stopped while its GPU memory was written: %s",
			d->process->pid, d->process->comm, why.msg);
	buf_add(&d->runs, d->device_runs.data, d->device_runs.len);
	d->device_runs.len = 0;
}

int fork_snapshot_end(struct dump *d, bool failed, struct err *e)
{
	bool whole = copy_is_whole(d->copy);
	pid_t pid = d->copy->vpid;

	copy_end(d->copy);
	d->copy = NULL;
	if (whole)
		return failed ? -1 : 0;
	return err_set(e, 0,
		"the copy of process %d that was being written has been killed: there may be "
		"too little memory for it (then checkpoint without --fork), or the program "
		"has killed all processes that it can",
		pid);
}
