/*
 * A process counts as one of the image's if it has the same id, in its own pid namespace, and the
 * same memory layout: where stack, arguments and environment lie is random, and restored. A
 * supervisor that still has the program, on whatever machine, holds the directory into which
 * it writes checkpoints (ckpt/store.h).
 */
#include "supervisor/restore/running_already.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/procfs.h"
#include "lib/util.h"

/* For supervisors that have been killed, or whose program has ended: on a busy machine that takes a
 * moment. */
#define GRACE_NS 3000000000ull

static const struct image_process *process_of(const struct image *img)
{
	size_t count;

	return image_note_array(img, IMAGE_NOTE_PROCESS, struct image_process, &count);
}

static bool same_layout(const struct image_process *p, const struct proc_stat *st)
{
	return st->field[STAT_START_STACK] == p->start_stack &&
	       st->field[STAT_ARG_START] == p->arg_start &&
	       st->field[STAT_ENV_START] == p->env_start;
}

/* In its innermost namespace. */
static pid_t own_id(pid_t pid)
{
	cleanup_free char *status = procfs_status(pid, pid, NULL);

	return status ? (pid_t)status_last_number(status, "NSpid") : 0;
}

/* Zombies have no memory, and processes whose memory we may not look at show none: then arguments
 * lie nowhere. */
static bool is_of(const struct checkpoint *c, pid_t pid, const struct proc_stat *st)
{
	if (!st->field[STAT_ARG_START])
		return false;
	for (size_t i = 0; i < c->process_count; i++) {
		const struct image_process *p = process_of(c->processes[i]);

		if (p && same_layout(p, st) && own_id(pid) == p->pid)
			return true;
	}
	return false;
}

/* One of the program's processes that are alive; 0: none is. */
static pid_t find_process(const struct checkpoint *c, struct proc_stat *st, struct err *e)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	if (!dir)
		return err_set(e, errno, "cannot list /proc");
	while (!found && (entry = readdir(dir))) {
		pid_t pid = isdigit((unsigned char)*entry->d_name) ? atoi(entry->d_name) : 0;

		/* It may end while we look. */
		if (pid && !procfs_stat(pid, pid, st, NULL) && is_of(c, pid, st))
			found = pid;
	}
	closedir(dir);
	return found;
}

/* Whether checkpoints go to where @c is. */
static bool same_place(const struct supervisor *s, const struct checkpoint *c)
{
	cleanup_free char *dir = realpath(s->options.dir, NULL);

	return dir && !strcmp(dir, c->parent);
}

/* Take the directory, or see which process has it. What else keeps us from writing there is
 * told at the first checkpoint. */
static bool hold_directory(struct supervisor *s, const struct checkpoint *c, struct err *e)
{
	bool held_for = false;

	if (!same_place(s, c))
		return store_is_held_for(c->parent, c->info->job_id, e);
	if (!s->store)
		s->store = store_open(c->parent, c->info->job_id, &held_for, e);
	return held_for;
}

static int refuse_processes(const struct checkpoint *c, struct err *e)
{
	struct proc_stat st;
	pid_t pid = find_process(c, &st, e);

	return pid > 0 ? err_set(e, 0, "process %d (%s) of the program is alive", pid, st.comm)
		       : pid;
}

/* *why also tells what keeps us from writing there. */
static int look_for_program(
	struct supervisor *s, const struct checkpoint *c, bool forced, struct err *why)
{
	why->msg[0] = 0;
	if (!forced && refuse_processes(c, why))
		return -1;
	return hold_directory(s, c, why) && !forced ? -1 : 0;
}

int running_already_check(struct supervisor *s, const struct checkpoint *c, bool forced,
	char **notice, struct err *e)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + GRACE_NS;
	struct err why = ERR_INIT;
	int r;

	*notice = NULL;
	while ((r = look_for_program(s, c, forced, &why)) &&
		clock_ns(CLOCK_MONOTONIC) < deadline)
		sleep_ns(20000000);
	if (r) {
		*e = why;
		return err_append(e,
			": end it first, or bring a second one back that uses the same files "
			"(--force)");
	}
	if (*why.msg && !s->store && same_place(s, c))
		*notice = xasprintf(
			"checkpoints of it will fail: %s (--dir names another directory)",
			why.msg);
	return 0;
}
