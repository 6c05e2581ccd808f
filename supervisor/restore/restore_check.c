/*
 * A restart before anything is made: what the image says, and whether all is here that it
 * needs.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/phase.h"
#include "supervisor/fd/reopen_despite_mode.h"
#include "supervisor/fd/temporary_directories.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/fd_kinds/saved_files_restore.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/memory/mapped_files_check.h"
#include "supervisor/memory/memory_fits.h"
#include "supervisor/restore/restart_attempt.h"
#include "supervisor/restore/process_by_loader.h"
#include "supervisor/restore/release_choice.h"
#include "supervisor/split/lower_restore.h"
#include "supervisor/start/spawn.h"
#include "supervisor/state/cpu.h"

void restore_say_nothing(const char *line)
{
}

/* Where a component lies in an XSAVE area is the processor's choice; with the same ones and
 * another size, it is another one. */
static int check_xsave(const struct restore *r)
{
	uint32_t words[CPU_WORDS];
	uint64_t xfeatures;

	cpu_features(words, &xfeatures);
	if (xfeatures != r->c->info->xfeatures || cpu_xsave_size() == r->c->info->xsave_size)
		return 0;
	return err_set(r->e, 0,
		"this processor keeps its vector registers in another layout than the "
		"processor on which the program ran");
}

/* Which processes have one memory in common. */
static void find_memory(struct restore *r, size_t i)
{
	struct new_process *np = &r->processes[i];
	size_t owner = checkpoint_owner(r->c, i, IMAGE_SHARED_MEMORY);

	np->last = true;
	if (owner == i)
		return;
	np->memory = &r->processes[owner];
	np->place = 1;
	for (size_t k = owner; k < i; k++) {
		if (r->processes[k].memory == np->memory)
			np->place++;
		if (r->processes[k].memory == np->memory || k == owner)
			r->processes[k].last = false;
	}
}

/* With --lazy, memory is filled when it is asked for, by each process. */
static void plan_inheritance(struct restore *r)
{
	if (r->o->lazy)
		return;
	r->inherit = inherit_plan(r->c, &r->creation.order);
	for (size_t i = 0; i < r->count; i++)
		r->creation.children[i].stays |= inherit_is_heir(r->inherit, i);
}

int restore_look_at_image(struct restore *r)
{
	if (r->c->process_count < 1)
		return err_set(r->e, 0, "the image holds no process");
	if (creation_init(&r->creation, r->c, r->e))
		return -1;
	r->count = r->c->process_count;
	plan_inheritance(r);
	r->processes = xcalloc(r->count, sizeof(*r->processes));
	for (size_t i = 0; i < r->count; i++) {
		struct new_process *np = &r->processes[i];

		np->s = r->s;
		np->c = r->c;
		np->o = r->o;
		np->look_at_others = r->o->look_at_others;
		np->mpi = r->o->mpi;
		np->others = r->o->others;
		np->trial = r->o->trial;
		np->clocks = &r->clocks;
		np->e = r->e;
		if (new_process_init(np, i, r->creation.children[i].fds))
			return -1;
		if (np->ip->pid != r->creation.order.list[i].pid)
			return err_set(r->e, 0, "the image is damaged: its list of processes");
		np->stays = r->creation.children[i].stays;
		find_memory(r, i);
	}
	r->newborn_count = creation_order_count(&r->creation.order) + r->count;
	r->newborns = xcalloc(r->newborn_count, sizeof(*r->newborns));
	for (size_t i = r->count; i < r->creation.order.count; i++)
		r->dumping += !!WCOREDUMP(r->creation.order.list[i].status);
	return 0;
}

/* Removed, or replaced by another, when the checkpoint was made: what was mapped of it is in
 * the image then. */
static bool was_removed(const char *exe)
{
	static const char suffix[] = " (deleted)";
	size_t n = strlen(exe), k = sizeof(suffix) - 1;

	return n > k && !strcmp(exe + n - k, suffix);
}

static int check_exe(struct restore *r, size_t i)
{
	const struct new_process *np = &r->processes[i];
	const char *exe = image_string(np->img, np->ip->exe);
	cleanup_free char *text = NULL;
	int code;

	r->creation.children[i].foreign_exe = !new_process_exe_is_there(np);
	code = errno;
	if (!r->creation.children[i].foreign_exe)
		return 0;
	if (code == ENOENT && fd_saved_in(r->c->job, exe)) { /* it is put back */
		r->creation.children[i].foreign_exe = false;
		return 0;
	}
	if (!(r->c->info->flags & IMAGE_JOB_PORTABLE) && !was_removed(exe))
		return err_set(r->e, code, "cannot execute the program's file %s", exe);
	text = xasprintf("%s is not here: /proc/self/exe will show trecr-restart instead", exe);
	restore_notice(r, text);
	return 0;
}

/* The root directory is changed by name, too. */
static int check_directories(struct restore *r, size_t i)
{
	const struct new_process *np = &r->processes[i];
	const struct image_directories *own; /* threads' own */
	size_t count;

	if (!np->ip->cwd_object &&
		fd_check_trusted(image_string(np->img, np->ip->cwd), 0, r->e))
		return -1;
	own = image_note_array(
		np->img, IMAGE_NOTE_DIRECTORIES, struct image_directories, &count);
	for (size_t k = 0; k < count; k++)
		if (fd_check_trusted(image_string(np->img, own[k].cwd), 0, r->e) ||
			fd_check_trusted(image_string(np->img, own[k].root), 0, r->e))
			return -1;
	return fd_check_trusted(image_string(np->img, np->ip->root), 0, r->e);
}

static int check_room(struct restore *r, uint64_t common)
{
	if (!memory_fits(r->c, common, r->e))
		return 0;
	return r->o->lazy ? err_append(r->e,
				    ", or without --lazy, as they may be shared again then")
			  : -1;
}

static bool is_needed(const void *creation, pid_t id)
{
	return creation_needs(creation, id);
}

int restore_check_before(struct restore *r, bool alive)
{
	struct fd_restore_options fo = {
		.alive = alive,
		.rollback_files = r->o->rollback_files,
		.destination = r->s->options.dir,
		.pidfile = r->s->pidfile,
		.clocks_continue = r->clocks.continued,
	};
	uint64_t common = r->inherit ? inherit_saves(r->inherit) : 0;

	/* Another release says itself what else it lacks. */
	if (release_check(r->c, r->e) ||
		cpu_check(r->c->info->cpuid, r->c->info->xfeatures, r->e) || check_xsave(r) ||
		check_room(r, common) || checkpoint_need_hashes(r->c, r->e))
		return -1;
	memory_tell_growth(r->c, common, alive ? NULL : r->o->notice);
	for (size_t i = 0; i < r->count; i++)
		if (restore_lower_check(&r->processes[i]))
			return -1;
	if (mapped_files_check(r->c, r->o->notice, r->e))
		return -1;
	for (size_t i = 0; i < r->count; i++)
		if (check_directories(r, i) || check_exe(r, i))
			return -1;
	restore_child_prepare_files(r->c, alive);
	/* Last, as it puts files back and cuts others. */
	if (fd_restore_check(r->c, &fo, r->o->notice, r->e))
		return -1;
	/* Also for files that have been put back. */
	restore_child_prepare_files(r->c, alive);
	fd_reopen_avoid_ids(is_needed, &r->creation);
	fd_name_temporary_directories(&fo);
	r->creation.fd_options = fo;
	for (size_t i = 0; i < r->count; i++)
		r->creation.children[i].trial = r->o->trial;
	return 0;
}

void restore_release(struct restore *r)
{
	phase_now = PHASE_NONE;
	for (size_t i = 0; i < r->count; i++)
		new_process_free(&r->processes[i]);
	free(r->processes);
	free(r->newborns);
	buf_free(&r->clocks.moved);
	inherit_free(r->inherit);
	creation_free(&r->creation);
	socket_kept_end(&r->kept);
	fd_reopen_end();
}

int restore_check(struct supervisor *s, const struct checkpoint *c, struct err *e)
{
	const struct restore_options o = {.notice = restore_say_nothing};
	struct restore r = {.s = s, .c = c, .o = &o, .e = e, .kept = SOCKET_KEPT_NONE};
	enum phase phase = phase_now;
	int failed = restore_look_at_image(&r) || restore_check_before(&r, true) ||
		     spawn_check(r.processes[0].ip->pid, e);

	restore_release(&r);
	phase_now = phase;
	return failed ? -1 : 0;
}
