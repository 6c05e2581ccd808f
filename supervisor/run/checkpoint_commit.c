/*
 * checkpoint_commit.c - what is written last: the chain to earlier checkpoints and the notes
 * of the job; then the store commits it, and old ones go.
 */
#include "supervisor/run/checkpoint_commit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "ckpt/store_dir.h"
#include "lib/notices.h"
#include "lib/phase.h"
#include "supervisor/job/checkpoint_part.h"
#include "supervisor/start/run_options.h"
#include "supervisor/state/cpu.h"

void checkpoint_write_chain(
	struct checkpoint_work *w, struct image_writer *writer, const struct image *parent)
{
	struct image_chain link = {
		.name = image_writer_string(writer, store_chain_name(w->s->store))};
	const struct image_chain *old;
	const uint32_t *names;
	size_t count, named;

	memcpy(link.checkpoint_id, w->id, sizeof(w->id));
	image_writer_chain(writer, &link, NULL);
	if (!parent)
		return;
	old = image_note_array(parent, IMAGE_NOTE_CHAIN, struct image_chain, &count);
	names = image_note_array(parent, IMAGE_NOTE_CHAIN_NAMES, uint32_t, &named);
	for (size_t i = 0; i < count; i++) {
		link = old[i];
		link.name = image_writer_string(writer, image_string(parent, old[i].name));
		image_writer_chain(writer, &link,
			i < named && names[i] ? image_string(parent, names[i]) : NULL);
	}
}

static void write_job_note(struct checkpoint_work *w)
{
	struct image_job *info = &w->info;
	cleanup_free char *cpu = cpu_model();
	struct utsname host;

	/* Fails for a bad address only. */
	(void)uname(&host);
	memcpy(info->job_id, w->s->job_id, sizeof(info->job_id));
	info->sequence = w->sequence;
	if (w->parent) {
		memcpy(info->parent_id, w->parent->job->super.checkpoint_id, 16);
		info->depth = w->parent->info->depth + 1;
		info->flags |= IMAGE_JOB_INCREMENTAL;
	}
	info->hostname = image_writer_string(w->job, host.nodename);
	info->kernel = image_writer_string(w->job, host.release);
	info->cpu = image_writer_string(w->job, cpu);
	info->version = image_writer_string(w->job, TRECR_VERSION);
	info->command = image_writer_string(w->job, w->s->command ? w->s->command : "");
	image_writer_maker(w->job, TRECR_VERSION, w->s->release ? w->s->release : "");
	cpu_features(info->cpuid, &info->xfeatures);
	info->xsave_size = cpu_xsave_size();
	info->stored_bytes = image_writer_stored(w->job);
	for (size_t i = 0; i < w->process_count; i++)
		info->stored_bytes += image_writer_stored(w->writers[i]);
	run_options_save(&w->s->options, w->job, info);
	image_writer_note(w->job, IMAGE_NOTE_JOB, info, sizeof(*info));
}

/* Blocks that are known not to have changed have been referred to without a look at their hashes. What a restart could
 * not read is not built on: the next attempt makes a full checkpoint. */
static int check_parent(struct checkpoint_work *w)
{
	for (size_t i = 0; i < w->process_count; i++) {
		if (!image_writer_check_tables(w->writers[i], w->e))
			continue;
		w->s->last.unrestartable = true;
		w->e->remedy = ERR_TRY_AGAIN;
		return -1;
	}
	return 0;
}

/* To disk, under its final name. The program may run meanwhile. */
static int commit_checkpoint(struct checkpoint_work *w, char **path)
{
	int failed = 0;

	phase_now = PHASE_COMMIT;
	if (check_parent(w))
		return -1;
	write_job_note(w);
	for (size_t i = 0; i < w->process_count; i++) {
		failed |= image_writer_close(w->writers[i], true, failed ? NULL : w->e);
		w->writers[i] = NULL;
	}
	failed |= image_writer_close(w->job, true, failed ? NULL : w->e);
	w->job = NULL;
	return failed ? -1 : store_commit(w->s->store, path, w->e);
}

static void note_complete(struct checkpoint_work *w, char *path, uint64_t sync_ns)
{
	free(w->made->path);
	*w->made = (struct complete_checkpoint){
		.path = path,
		.sequence = w->sequence,
		.realtime_ns = w->info.realtime_ns,
		.pause_ns = w->info.pause_ns,
		.stored_bytes = w->info.stored_bytes,
		.memory_bytes = w->info.memory_bytes,
		.sync_ns = sync_ns,
	};
}

int checkpoint_complete(struct checkpoint_work *w)
{
	struct part *part = w->request->part;
	uint64_t from = clock_ns(CLOCK_MONOTONIC), to;
	char *path = NULL;

	if (commit_checkpoint(w, &path))
		return -1;
	if (part && part_stored(part, w->id, w->s->job_id, w->e)) {
		free(path);
		return -1;
	}
	to = clock_ns(CLOCK_MONOTONIC);
	note_complete(w, path, to - from);
	if (w->request->foresee && to > w->request->deadline_ns)
		notice_add("the checkpoint came %.1f s after the deadline: the disk was slow",
			(to - w->request->deadline_ns) / 1e9);
	return 0;
}

void checkpoint_prune(struct checkpoint_work *w)
{
	struct err e = ERR_INIT;

	(void)store_prune(w->s->store, w->s->job_id, w->s->options.keep, &e);
}
