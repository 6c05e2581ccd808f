#include "supervisor/run/checkpoint_memory.h"

#include <stdlib.h>

#include "ckpt/blocks.h"
#include "lib/phase.h"
#include "supervisor/descriptors/descriptors.h"
#include "supervisor/run/copies.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/target/copy.h"

/* A program that is to be ended has nothing to run on for. */
static bool wants_copies(const struct checkpoint_work *w)
{
	return w->request->fork && !w->request->stop;
}

static bool owns_memory(const struct checkpoint_work *w, size_t i)
{
	return w->tree.processes[i]->owner[IMAGE_SHARED_MEMORY] == i;
}

/* What memory there is. */
static int dump_one_memory(struct checkpoint_work *w, size_t i)
{
	struct dump *d = &w->dumps[i];

	if (!owns_memory(w, i))
		return 0;
	d->alone = true;
	for (size_t k = i + 1; k < w->process_count; k++)
		d->alone &= w->tree.processes[k]->owner[IMAGE_SHARED_MEMORY] != i;
	if (dump_memory(d, w->e) || dump_lower(d, w->e) ||
		copies_make(d, wants_copies(w), &w->tree, checkpoint_reaper(w), w->e))
		return -1;
	w->info.memory_bytes += d->memory_bytes;
	return checkpoint_given_up(w, w->e);
}

int checkpoint_list_memory(struct checkpoint_work *w)
{
	for (size_t i = 0; i < w->process_count; i++)
		if (dump_one_memory(w, i))
			return -1;
	return 0;
}

/* Asked time and again while memory is written. */
static int is_cancelled(void *context, struct err *e)
{
	return checkpoint_given_up(context, e);
}

static int write_runs(struct checkpoint_work *w, const struct buf *runs,
	struct image_writer *writer, const struct image *parent)
{
	cleanup_free uint32_t *source = NULL;
	size_t sources = 0;
	struct block_job job = {
		.runs = runs->data,
		.run_count = buf_count(runs, struct block_run),
		.writer = writer,
		.parent = parent,
		.pack = w->request->compress,
		.check_clean = getenv("TRECR_TEST_CHECK_CLEAN"),
		.cancelled = is_cancelled,
		.cancel_context = w,
		.threads = w->request->threads,
		.throttle = &w->throttle,
		.done = &w->under_way->done_bytes,
	};

	if (parent)
		image_note_array(parent, IMAGE_NOTE_CHAIN, struct image_chain, &sources);
	source = xcalloc(sources, sizeof(*source));
	for (size_t i = 0; i < sources; i++)
		source[i] = i + 1; /* see checkpoint_write_chain() */
	job.parent_source = source;
	return blocks_write(&job, w->e);
}

int checkpoint_write_memory(struct checkpoint_work *w)
{
	under_way_writes(w->under_way, w->info.memory_bytes);
	phase_now = PHASE_WRITE;
	for (size_t i = 0; i < w->process_count; i++) {
		struct dump *d = &w->dumps[i];

		if (owns_memory(w, i) &&
			write_runs(w, &d->runs, d->writer,
				checkpoint_parent_process(w, d->process->vpid)))
			return -1;
	}
	return write_runs(w, &w->shared_runs, w->job, NULL);
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

		if (!d->copy || failed)
			continue;
		failed = write_runs(w, &d->copied_runs, d->writer,
			checkpoint_parent_process(w, d->copy->vpid));
		failed = copies_end(d, failed, w->e);
	}
	phase_now = PHASE_NONE;
	return failed;
}
