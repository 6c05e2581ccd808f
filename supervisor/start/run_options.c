/*
 * run_options.c - the supervisor's options are written into notes of the image; at a restart the
 * notes are checked, and the options taken from them.
 */
#include "supervisor/start/run_options.h"

#include <signal.h>

#include "lib/util.h"
#include "supervisor/start/supervisor_options.h"

static const enum image_run_tcp tcp_modes[] = {
	[FD_TCP_REFUSE] = IMAGE_RUN_TCP_REFUSE,
	[FD_TCP_RESET] = IMAGE_RUN_TCP_RESET,
	[FD_TCP_KEEP] = IMAGE_RUN_TCP_KEEP,
};

static void save_directories(const struct supervisor_options *o, struct image_writer *job)
{
	for (const char *one = NULL; (one = strings_next(o->save_directories, one));) {
		uint32_t name = image_writer_string(job, one);

		image_writer_note(job, IMAGE_NOTE_SAVE_DIRS, &name, sizeof(name));
	}
}

void run_options_save(
	const struct supervisor_options *o, struct image_writer *job, struct image_job *info)
{
	const struct image_options options = {.save_files = o->save_files};
	const struct image_run_options run = {
		.rate = o->rate,
		.fork_limit = o->fork_limit,
		.interval_s = o->interval_s,
		.keep = o->keep,
		.full_every = o->full_every,
		.ckpt_signal = o->ckpt_signal,
		.deadline_s = o->deadline_s,
		.drain_s = o->drain_s,
		.flags = (o->incremental ? IMAGE_RUN_INCREMENTAL : 0) |
			 (o->dirty == DIRTY_UFFD ? IMAGE_RUN_DIRTY_UFFD : 0) |
			 (o->fork ? IMAGE_RUN_FORK : 0),
		.tcp = tcp_modes[o->tcp],
		.compress_method = o->compress.method,
		.compress_level = o->compress.level,
	};

	if (o->portable)
		info->flags |= IMAGE_JOB_PORTABLE;
	if (o->save_files)
		image_writer_note(job, IMAGE_NOTE_OPTIONS, &options, sizeof(options));
	image_writer_note(job, IMAGE_NOTE_RUN_OPTIONS, &run, sizeof(run));
	save_directories(o, job);
}

uint64_t run_options_save_files(const struct supervisor_options *o)
{
	return !o->save_files && o->save_directories ? SAVE_FILES_DEFAULT : o->save_files;
}

/* False for values that trecr never writes. */
static bool is_sound(const struct image_run_options *run)
{
	return run->keep && run->drain_s && run->ckpt_signal < NSIG &&
	       run->tcp < IMAGE_RUN_TCP_MODES && run->compress_method < IMAGE_PACK_METHODS;
}

static void take_run(struct supervisor_options *o, const struct image_run_options *run)
{
	o->rate = run->rate;
	o->fork_limit = run->fork_limit;
	o->interval_s = run->interval_s;
	o->keep = run->keep;
	o->full_every = run->full_every;
	o->ckpt_signal = run->ckpt_signal;
	o->deadline_s = run->deadline_s;
	o->drain_s = run->drain_s;
	o->incremental = run->flags & IMAGE_RUN_INCREMENTAL;
	o->dirty = run->flags & IMAGE_RUN_DIRTY_UFFD ? DIRTY_UFFD : DIRTY_HASH;
	o->fork = run->flags & IMAGE_RUN_FORK;
	o->compress.method = run->compress_method;
	o->compress.level = run->compress_level;
	for (size_t mode = 0; mode < ARRAY_SIZE(tcp_modes); mode++)
		if (tcp_modes[mode] == run->tcp)
			o->tcp = mode;
}

/* Also options that were left out at the checkpoint. */
static int take_directories(
	struct supervisor_options *o, const struct image *job, struct err *e)
{
	cleanup_buf struct buf all = {0};
	const uint32_t *names;
	size_t count;

	names = image_note_array(job, IMAGE_NOTE_SAVE_DIRS, uint32_t, &count);
	for (size_t i = 0; i < count; i++) {
		const char *name = image_string(job, names[i]);

		if (*name != '/')
			return err_set(e, 0,
				"the image is damaged: the directories that are to be saved");
		buf_add(&all, name, strlen(name) + 1);
	}
	if (all.len)
		buf_grow(&all, 1); /* the end of the list */
	free(o->save_directories);
	o->save_directories = steal_ptr(all.data);
	return 0;
}

int run_options_take(struct supervisor_options *o, const struct image *job,
	const struct image_job *info, struct err *e)
{
	const struct image_run_options *run;
	const struct image_options *options;
	size_t count;

	run = image_note_array(job, IMAGE_NOTE_RUN_OPTIONS, struct image_run_options, &count);
	if (count && !is_sound(run))
		return err_set(e, 0, "the image is damaged: the options of its run");
	if (count)
		take_run(o, run);
	options = image_note_array(job, IMAGE_NOTE_OPTIONS, struct image_options, &count);
	if (count)
		o->save_files = options->save_files;
	o->portable = info->flags & IMAGE_JOB_PORTABLE;
	return take_directories(o, job, e);
}
