/*
 * checkpoint_work.c - begin and end of the work, ids and files of images, the parent of an
 * incremental one, and whether it has been given up.
 */
#include "supervisor/run/checkpoint_work.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "ckpt/common_blocks.h"
#include "lib/phase.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/target/process_copy.h"

static int new_ids(struct checkpoint_work *w)
{
	static const uint8_t none[16];

	if (!memcmp(w->s->job_id, none, sizeof(none)) &&
		getrandom(w->s->job_id, sizeof(w->s->job_id), 0) != sizeof(w->s->job_id))
		return err_set(w->e, errno, "cannot create an id for the job");
	if (getrandom(w->id, sizeof(w->id), 0) != sizeof(w->id))
		return err_set(w->e, errno, "cannot create an id for the checkpoint");
	return 0;
}

/* The parent to compare with, when this is to be an incremental checkpoint. */
static void open_parent(struct checkpoint_work *w)
{
	const struct supervisor_options *o = &w->s->options;

	if (!o->incremental || !w->s->last.path || w->s->last.unrestartable)
		return;
	/* Removed by hand, or damaged: then this one is a full one. */
	w->parent = checkpoint_open(w->s->last.path, NULL);
	if (w->parent && o->full_every && w->parent->info->depth + 1 >= o->full_every) {
		checkpoint_close(w->parent);
		w->parent = NULL;
	}
}

int checkpoint_work_begin(struct checkpoint_work *w)
{
	if (new_ids(w))
		return -1;
	open_parent(w);
	if (!store_begin(w->s->store, &w->dirfd, &w->sequence, w->e))
		return 0;
	checkpoint_close(w->parent);
	return -1;
}

void checkpoint_work_end(struct checkpoint_work *w)
{
	phase_now = PHASE_NONE;
	for (size_t i = 0; i < w->process_count; i++) {
		if (w->writers[i])
			image_writer_abort(w->writers[i]);
		copy_end(w->dumps[i].copy);
		dump_free(&w->dumps[i]);
	}
	if (w->job)
		image_writer_abort(w->job);
	if (w->fds)
		fd_dump_free(w->fds);
	namespaces_free(&w->namespaces);
	own_state_free(&w->own);
	buf_free(&w->shared_runs);
	peers_free(w->peers);
	free(w->writers);
	free(w->dumps);
	free(w->roles);
	checkpoint_close(w->parent);
}

static int out_of_time(const struct checkpoint_work *w, struct err *e)
{
	if (!w->request->deadline_ns)
		return 0;
	if (clock_ns(CLOCK_MONOTONIC) >= w->request->deadline_ns)
		return err_set(e, 0, "the time that %s gives the checkpoint has passed",
			checkpoint_deadline_option(w->request));
	return w->request->foresee ? under_way_foresee(w->under_way, w->request->deadline_ns, e)
				   : 0;
}

int checkpoint_given_up(const struct checkpoint_work *w, struct err *e)
{
	return under_way_cancelled(w->under_way, e) || out_of_time(w, e) ? -1 : 0;
}

pid_t checkpoint_reaper(const struct checkpoint_work *w)
{
	return w->s->init ? w->s->init : getpid();
}

const struct image *checkpoint_parent_process(const struct checkpoint_work *w, pid_t vpid)
{
	const struct image_job_process *list;
	size_t count;

	if (!w->parent)
		return NULL;
	list = image_note_array(
		w->parent->job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	for (size_t i = 0; i < count && i < w->parent->process_count; i++)
		if (list[i].pid == vpid)
			return w->parent->processes[i];
	return NULL;
}
