/*
 * run_options.h - how a program is to be checkpointed, saved in its image: a restart continues with
 * what its run was started with.
 */
#ifndef SUPERVISOR_START_RUN_OPTIONS_H
#define SUPERVISOR_START_RUN_OPTIONS_H

#include "ckpt/image_read.h"
#include "ckpt/image_write.h"
#include "supervisor/start/supervisor.h"

/* Put them into the image of a job, and into @info, which is still to be written. What belongs to
 * one start is left out: the directory, the number of threads, the job's members. */
void run_options_save(
	const struct supervisor_options *o, struct image_writer *job, struct image_job *info);

/* Contents of files up to this size, in bytes, are to be saved; 0: of none. */
uint64_t run_options_save_files(const struct supervisor_options *o);

/* Set in @o what the image tells, and nothing else. */
int run_options_take(struct supervisor_options *o, const struct image *job,
	const struct image_job *info, struct err *e);

#endif
