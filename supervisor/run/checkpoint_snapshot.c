/*
 * checkpoint_snapshot.c - the order in which state is saved: processes and threads, io_urings,
 * descriptors, clocks.
 */
#include "supervisor/run/checkpoint_snapshot.h"

#include <time.h>

#include "lib/phase.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/job/checkpoint_part.h"
#include "supervisor/job/member_files.h"
#include "supervisor/memory/aio_dump.h"
#include "supervisor/memory/memory_dump.h"
#include "supervisor/run/checkpoint_commit.h"
#include "supervisor/run/checkpoint_memory.h"
#include "supervisor/run/checkpoint_common_blocks.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/split/mpi_files.h"
#include "supervisor/start/run_options.h"
#include "supervisor/start/terminal.h"
#include "supervisor/sysv/sysv.h"
#include "supervisor/target/clocks.h"
#include "supervisor/target/module.h"
#include "supervisor/tree/tree_dump.h"

static int dump_begin(struct checkpoint_work *w, size_t i)
{
	struct process *p = w->tree.processes[i];
	const struct image *parent = checkpoint_parent_process(w, p->vpid);
	cleanup_free char *name = xasprintf("%d", p->vpid);
	cleanup_free char *what = xasprintf("%s/%s", store_name(w->s->store), name);
	struct dump *d = &w->dumps[i];

	w->writers[i] =
		image_writer_open(w->dirfd, name, IMAGE_FILE_PROCESS, w->id, what, w->e);
	if (!w->writers[i])
		return -1;
	d->process = p;
	d->writer = w->writers[i];
	d->job_writer = w->job;
	d->fds = w->fds;
	d->modules = w->s->modules;
	d->deadline_ns = w->request->deadline_ns;
	d->portable = w->s->options.portable;
	d->namespaces = &w->namespaces;
	d->own = &w->own;
	d->shared_runs = &w->shared_runs;
	if (w->s->options.incremental && w->s->options.dirty == DIRTY_UFFD)
		d->dirty = &w->s->dirty;
	if (parent)
		d->parent_id = w->parent->job->super.checkpoint_id;
	checkpoint_write_chain(w, d->writer, parent);
	return dump_refuse(d, w->e) || dump_prepare(d, w->e) ? -1 : 0;
}

static int dump_one(struct checkpoint_work *w, size_t i)
{
	struct dump *d = &w->dumps[i];
	size_t owner = d->process->owner[IMAGE_SHARED_MEMORY];

	d->memory_writer = owner == i ? NULL : w->writers[owner];
	return checkpoint_given_up(w, w->e) || dump_process(d, w->e) ||
			       dump_directories(d, &w->tree, w->e)
		       ? -1
		       : 0;
}

static int dump_one_table(struct checkpoint_work *w, size_t i)
{
	struct dump *d = &w->dumps[i];
	bool shares = d->process->owner[IMAGE_SHARED_FILES] != i;
	int limit;

	if (checkpoint_given_up(w, w->e) || lower_fd_limit(d->process, &limit, w->e))
		return -1;
	return fd_dump_process(w->fds, d->process->pid, shares ? NULL : d->writer, limit, w->e);
}

/* Requests that are under way change files, which are looked at next, and memory. Both may be other members', too, who
 * look at them when the requests of all have ended. */
static int settle_requests(struct checkpoint_work *w)
{
	for (size_t i = 0; i < w->process_count; i++) {
		const struct process *p = w->dumps[i].process;

		if (p->owner[IMAGE_SHARED_MEMORY] == i && dump_settle_aio(p, w->e))
			return -1;
	}
	if (fd_settle_rings(w->fds, w->e))
		return -1;
	return w->request->part ? part_reached(w->request->part, PART_SETTLED, w->e) : 0;
}

/* Of a file that several ranks have open, one of them notes what becomes of it. */
static int dump_files_of_mpi(struct checkpoint_work *w)
{
	struct mpi_file_name name;
	uint32_t count;

	if (mpi_files_count(&w->mpi, &count, w->e))
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		int there = mpi_file_name(&w->mpi, i, &name, w->e);

		if (there < 0 || (there && name.is_ours &&
					 fd_dump_without_descriptor(
						 w->fds, name.path, name.flags, w->e)))
			return -1;
	}
	return 0;
}

static int dump_descriptors(struct checkpoint_work *w)
{
	if (settle_requests(w))
		return -1;
	for (size_t i = 0; i < w->process_count; i++)
		if (dump_one_table(w, i))
			return -1;
	if (dump_files_of_mpi(w))
		return -1;
	for (size_t i = 0; i < w->process_count; i++) {
		struct process *p = w->dumps[i].process;

		if (fd_dump_rings(w->fds, p, w->e) ||
			fd_dump_threads(w->fds, p->pid, p->lower, w->writers[i], w->e))
			return -1;
	}
	return dump_tree_check_terminals(&w->tree, w->fds, w->e);
}

/* The program's clocks: when all has been asked what time it has left, as what continues from
 * an earlier time would end early by the difference. */
static int read_clocks(struct checkpoint_work *w)
{
	struct clock_shifts shifts;

	if (clocks_of(w->tree.processes[0]->task, &shifts, w->e))
		return -1;
	clocks_boot_id(w->info.boot_id);
	w->info.monotonic_shift_ns = shifts.monotonic_ns;
	w->info.boottime_shift_ns = shifts.boottime_ns;
	w->info.monotonic_ns = clock_ns(CLOCK_MONOTONIC) + w->tree.clocks.monotonic_ns;
	w->info.boottime_ns = clock_ns(CLOCK_BOOTTIME) + w->tree.clocks.boottime_ns;
	return 0;
}

/* What one process of a restart has open besides the program's files, at most: all images with
 * the files that they refer to, and once more those of its own, which outlast execve(2), with what it
 * maps (state/restart_fds.h). Processes that share a table of descriptors need the sum in it. */
static uint64_t files_besides(const struct checkpoint_work *w)
{
	uint64_t images = image_writer_sources(w->job), most = 0;
	cleanup_free uint64_t *own = xcalloc(w->process_count, sizeof(*own));

	for (size_t i = 0; i < w->process_count; i++) {
		const struct dump *d = &w->dumps[i];
		uint64_t *sum = &own[d->process->owner[IMAGE_SHARED_FILES]];
		uint64_t sources = image_writer_sources(d->writer);

		images += sources;
		*sum += sources + buf_count(&d->modules_used, struct image_module);
		if (*sum > most)
			most = *sum;
	}
	return images + most;
}

/* A file for what is shared, and one for each process. */
static int begin_files(struct checkpoint_work *w)
{
	cleanup_free char *what = xasprintf("%s/%s", store_name(w->s->store), IMAGE_JOB_FILE);

	w->job = image_writer_open(w->dirfd, IMAGE_JOB_FILE, IMAGE_FILE_JOB, w->id, what, w->e);
	if (!w->job)
		return -1;
	checkpoint_write_chain(w, w->job, w->parent ? w->parent->job : NULL);
	w->fds = fd_dump_new(w->job, w->request->tcp);
	fd_dump_tree(w->fds, &w->tree);
	if (w->request->part)
		fd_dump_rank(w->fds, w->s->job->rank);
	fd_dump_save_files(w->fds, run_options_save_files(&w->s->options),
		w->s->options.save_directories, !w->request->stop);
	if (!w->s->modules)
		w->s->modules = module_cache_new();
	w->process_count = w->tree.living;
	w->writers = xcalloc(w->process_count, sizeof(*w->writers));
	w->dumps = xcalloc(w->process_count, sizeof(*w->dumps));
	w->info.process_count = w->tree.count;
	namespaces_read(&w->namespaces, checkpoint_reaper(w), w->tree.processes[0]->task);
	if (own_state_read(&w->own, w->e))
		return -1;
	for (size_t i = 0; i < w->process_count; i++)
		if (dump_begin(w, i))
			return -1;
	return 0;
}

/* All but memory. */
static int dump_processes(struct checkpoint_work *w)
{
	if (dump_tree(&w->tree, checkpoint_reaper(w), w->job, w->e))
		return -1;
	for (size_t i = 0; i < w->process_count; i++)
		if (dump_one(w, i))
			return -1;
	return dump_descriptors(w);
}

int checkpoint_snapshot(struct checkpoint_work *w)
{
	phase_now = PHASE_DUMP;
	if (begin_files(w) || dump_processes(w) || checkpoint_list_memory(w))
		return -1;
	checkpoint_begin_peers(w, files_besides(w));
	if (checkpoint_write_memory(w) || sysv_dump_rest(w->fds, &w->tree, w->e))
		return -1;
	phase_now = PHASE_DUMP;
	terminal_dump(w->s, w->fds, w->job);
	if (read_clocks(w) || fd_dump_finish(w->fds, files_besides(w), w->e))
		return -1;
	for (size_t i = 0; i < w->process_count; i++)
		dump_protect(&w->dumps[i]);
	return 0;
}
