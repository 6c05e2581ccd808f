/*
 * checkpoint_memory.c - which process saves shared memory, how much there is to be written,
 * and the writing itself: out of the stopped processes, or of their copies.
 */
#include "supervisor/run/checkpoint_memory.h"

#include <stdlib.h>

#include "ckpt/blocks.h"
#include "ckpt/common_blocks.h"
#include "lib/phase.h"
#include "lib/threads.h"
#include "lib/test_hooks.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/memory/maps_ahead.h"
#include "supervisor/memory/memory_available.h"
#include "supervisor/memory/memory_dump.h"
#include "supervisor/memory/private_pages.h"
#include "supervisor/run/checkpoint_common_blocks.h"
#include "supervisor/run/fork_snapshot.h"
#include "supervisor/split/device_snapshot.h"
#include "supervisor/split/lower_dump.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/target/memory_limits.h"
#include "supervisor/target/process_copy.h"

/* A program that is to be ended has nothing to run on for. */
static bool wants_copies(const struct checkpoint_work *w)
{
	return w->request->fork && !w->request->stop;
}

static bool owns_memory(const struct checkpoint_work *w, size_t i)
{
	return w->tree.processes[i]->owner[IMAGE_SHARED_MEMORY] == i;
}

static void expect_memory(struct checkpoint_work *w, const struct dump *d)
{
	cleanup_free char *name = xasprintf("%d", d->process->vpid);

	image_writer_expect(d->writer, w->dirfd, name, d->memory_bytes);
}

/* What memory there is. */
static int dump_one_memory(struct checkpoint_work *w, size_t i)
{
	struct dump *d = &w->dumps[i];

	if (!owns_memory(w, i))
		return 0;
	d->may_wait = wants_copies(w) && w->fork_room;
	d->alone = true;
	for (size_t k = i + 1; k < w->process_count; k++)
		d->alone &= w->tree.processes[k]->owner[IMAGE_SHARED_MEMORY] != i;
	if (dump_memory(d, w->e) || dump_lower(d, w->e))
		return -1;
	fork_snapshot_copy_devices(d, wants_copies(w) && w->s->options.fork_limit);
	if (fork_snapshot_make(
		    d, wants_copies(w), &w->fork_room, &w->tree, checkpoint_reaper(w), w->e))
		return -1;
	w->info.memory_bytes += d->memory_bytes;
	expect_memory(w, d);
	return checkpoint_given_up(w, w->e);
}

static void expect_shared_memory(struct checkpoint_work *w)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < buf_count(&w->shared_runs, struct block_run); i++)
		bytes += buf_at(&w->shared_runs, struct block_run, i)->size;
	image_writer_expect(w->job, w->dirfd, IMAGE_JOB_FILE, bytes);
}

/* At worst each page is there twice: without a limit half of the available memory. */
static uint64_t room_for_copies(const struct supervisor *s)
{
	uint64_t limit = s->options.fork_limit;

	return limit != FORK_LIMIT_NONE ? limit : memory_available_now(s->root) / 2;
}

/* Asked time and again while memory is written. */
static int is_cancelled(void *context, struct err *e)
{
	return checkpoint_given_up(context, e);
}

/* What is of no process, or of no one alone. */
#define NO_PROCESS SIZE_MAX

static bool is_peer(const struct checkpoint_work *w, size_t process)
{
	return w->peers && process != NO_PROCESS && w->roles[process].is_peer;
}

/* Of each file that blocks of @parent may be in, its number in the new chain (checkpoint_write_chain()). The caller
 * frees it. */
static uint32_t *parent_sources(const struct image *parent)
{
	size_t sources = 0;
	uint32_t *source;

	if (parent)
		image_note_array(parent, IMAGE_NOTE_CHAIN, struct image_chain, &sources);
	source = xcalloc(sources, sizeof(*source));
	for (size_t i = 0; i < sources; i++)
		source[i] = i + 1;
	return source;
}

static struct blocks_to_write prepare_runs(struct checkpoint_work *w, size_t process,
	const struct buf *runs, struct image_writer *writer, const struct image *parent)
{
	return (struct blocks_to_write){
		.runs = runs->data,
		.run_count = buf_count(runs, struct block_run),
		.writer = writer,
		.parent = parent,
		.parent_source = parent_sources(parent),
		.peers = is_peer(w, process) && w->roles[process].looks ? w->peers : NULL,
		.pack = w->request->compress,
		.check_clean = test_check_clean(),
		.cancelled = is_cancelled,
		.cancel_context = w,
		.threads = w->request->threads,
		.throttle = &w->throttle,
		.done = &w->under_way->done_bytes,
	};
}

/* Those of processes in which nothing is mapped before theirs are read: neither the buffer of a lower half, nor is
 * memory of theirs watched. */
static struct maps_ahead *begin_maps(struct checkpoint_work *w)
{
	cleanup_free pid_t *tasks = xcalloc(w->process_count, sizeof(*tasks));
	struct maps_ahead *ahead = NULL;

	for (size_t i = 0; i < w->process_count; i++) {
		const struct process *p = w->tree.processes[i];

		if (owns_memory(w, i) && !p->lower && !w->dumps[i].dirty)
			tasks[i] = p->task;
	}
	if (threads_wanted(w->request->threads, 2) > 1)
		ahead = maps_ahead_begin(tasks, w->process_count);
	for (size_t i = 0; i < w->process_count; i++) {
		w->dumps[i].maps_ahead = ahead;
		w->dumps[i].number = i;
	}
	return ahead;
}

static void end_maps(struct checkpoint_work *w, struct maps_ahead *ahead)
{
	for (size_t i = 0; i < w->process_count; i++)
		w->dumps[i].maps_ahead = NULL;
	maps_ahead_end(ahead);
}

/* Process @i, whose memory has been listed, is written while that of others is: what has too little memory for others to
 * look for theirs in it, and is not asked for what to write. */
static void write_meanwhile(struct checkpoint_work *w, size_t i, struct blocks_stream *stream,
	struct blocks_to_write *file)
{
	struct dump *d = &w->dumps[i];

	if (!owns_memory(w, i) || checkpoint_may_be_peer(w, i) || d->process->lower)
		return;
	*file = prepare_runs(
		w, i, &d->runs, d->writer, checkpoint_parent_process(w, d->process->vpid));
	d->is_written = true;
	blocks_stream_add(stream, file);
}

/* All memory has been listed: nothing but to write it is left. */
static void begin_writing(struct checkpoint_work *w)
{
	under_way_writes(w->under_way, w->info.memory_bytes);
	phase_now = PHASE_WRITE;
}

static int dump_all_memory(struct checkpoint_work *w)
{
	cleanup_free struct blocks_to_write *files = xcalloc(w->process_count, sizeof(*files));
	struct blocks_stream *stream = blocks_stream_begin(w->process_count);
	struct maps_ahead *ahead = begin_maps(w);
	int failed = 0;

	under_way_counts(w->under_way);
	for (size_t i = 0; i < w->process_count && !failed; i++) {
		failed = dump_one_memory(w, i);
		if (!failed && w->process_count > 1)
			write_meanwhile(w, i, stream, &files[i]);
	}
	end_maps(w, ahead);
	if (!failed)
		begin_writing(w);
	failed |= blocks_stream_end(stream, failed, w->e);
	for (size_t i = 0; i < w->process_count; i++)
		free((void *)files[i].parent_source);
	return failed ? -1 : 0;
}

int checkpoint_list_memory(struct checkpoint_work *w)
{
	if (wants_copies(w))
		w->fork_room = room_for_copies(w->s);
	if (dump_all_memory(w))
		return -1;
	expect_shared_memory(w);
	return 0;
}

static int write_runs(struct checkpoint_work *w, size_t process, const struct buf *runs,
	struct image_writer *writer, const struct image *parent)
{
	struct blocks_to_write to_write = prepare_runs(w, process, runs, writer, parent);
	int failed;

	to_write.half = w->request->nobody_waits && phase_now == PHASE_COPIES;
	failed = blocks_write(&to_write, w->e);

	if (!failed && is_peer(w, process) && process < w->last_looks)
		peers_add(w->peers, writer, parent, to_write.parent_source);
	free((void *)to_write.parent_source);
	return failed;
}

/* How much a restart needs for the contents shows when they are written. Copies are written when the
 * processes run again: until then theirs count as if nothing were zero. */
static int refuse_full(const struct dump *d, struct err *e)
{
	size_t extents, hashes, runs = buf_count(&d->copied_runs, struct block_run);
	uint64_t copied = private_pages_expected(d);

	image_writer_recorded(d->writer, &extents, &hashes);
	for (size_t i = 0; i < runs; i++)
		copied += buf_at(&d->copied_runs, struct block_run, i)->size;
	hashes += copied / IMAGE_BLOCK * IMAGE_HASH_SIZE;
	return memory_limits_refuse(&d->use, memory_limits_contents(extents + runs, hashes), e);
}

/* Those that look for blocks of others are written when these have been, and lower halves are asked one at a time. */
static bool is_written_alone(const struct checkpoint_work *w, size_t i)
{
	return is_peer(w, i) || w->tree.processes[i]->lower;
}

static int write_together(struct checkpoint_work *w)
{
	cleanup_buf struct buf files = {0};
	int failed;

	for (size_t i = 0; i < w->process_count; i++) {
		struct dump *d = &w->dumps[i];
		struct blocks_to_write to_write;

		if (!owns_memory(w, i) || d->is_written || is_written_alone(w, i))
			continue;
		to_write = prepare_runs(w, i, &d->runs, d->writer,
			checkpoint_parent_process(w, d->process->vpid));
		d->is_written = true;
		buf_push(&files, struct blocks_to_write, &to_write);
	}
	failed =
		blocks_write_files(files.data, buf_count(&files, struct blocks_to_write), w->e);
	for (size_t i = 0; i < buf_count(&files, struct blocks_to_write); i++)
		free((void *)buf_at(&files, struct blocks_to_write, i)->parent_source);
	return failed;
}

int checkpoint_write_memory(struct checkpoint_work *w)
{
	begin_writing(w);
	if (write_together(w))
		return -1;
	for (size_t i = 0; i < w->process_count; i++) {
		struct dump *d = &w->dumps[i];

		if (!owns_memory(w, i))
			continue;
		if ((!d->is_written &&
			    write_runs(w, i, &d->runs, d->writer,
				    checkpoint_parent_process(w, d->process->vpid))) ||
			memory_limits_measure(d->process->task, &d->use, w->e) ||
			refuse_full(d, w->e))
			return -1;
	}
	return write_runs(w, NO_PROCESS, &w->shared_runs, w->job, NULL);
}

void checkpoint_keep_devices(struct checkpoint_work *w)
{
	for (size_t i = 0; i < w->process_count; i++)
		if (w->dumps[i].device_snapshot)
			device_snapshot_keep(w->dumps[i].device_snapshot);
}

void checkpoint_drop_devices(struct checkpoint_work *w)
{
	for (size_t i = 0; i < w->process_count; i++) {
		device_snapshot_end(w->dumps[i].device_snapshot);
		w->dumps[i].device_snapshot = NULL;
	}
}

/* The program gets the memory back that the copy has as soon as it has been written. */
static int write_devices(struct checkpoint_work *w, struct dump *d)
{
	int failed = write_runs(w, NO_PROCESS, &d->device_runs, d->writer,
		checkpoint_parent_process(w, device_snapshot_vpid(d->device_snapshot)));

	device_snapshot_end(d->device_snapshot);
	d->device_snapshot = NULL;
	return failed;
}

static int write_copy(struct checkpoint_work *w, size_t i)
{
	struct dump *d = &w->dumps[i];
	uint64_t expected = d->memory_bytes;

	if (private_pages_finish(d, w->e))
		return -1;
	w->info.memory_bytes += d->memory_bytes - expected;
	if (write_runs(w, i, &d->copied_runs, d->writer,
		    checkpoint_parent_process(w, d->copy->vpid)))
		return -1;
	/* They may be in more parts than there were runs. */
	d->copied_runs.len = 0;
	return refuse_full(d, w->e);
}

int checkpoint_write_copies(struct checkpoint_work *w)
{
	int failed = 0;

	/* Descriptors of the program's that have been fetched are not to be held on to. */
	fd_dump_free(w->fds);
	w->fds = NULL;
	phase_now = PHASE_COPIES;
	for (size_t i = 0; i < w->process_count; i++) {
		struct dump *d = &w->dumps[i];

		if (!failed && d->device_snapshot)
			failed = write_devices(w, d);
		if (!d->copy || failed)
			continue;
		failed = fork_snapshot_end(d, write_copy(w, i), w->e);
	}
	phase_now = PHASE_NONE;
	return failed;
}
