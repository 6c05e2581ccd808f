/* job_view.h - the checkpoint of a job at a glance: its ranks and their nodes, and its communicators. */
#ifndef TOOLS_INSPECT_JOB_VIEW_H
#define TOOLS_INSPECT_JOB_VIEW_H

#include "ckpt/store.h"
#include "lib/util.h"

/* @path is the job's checkpoint, @members the checkpoints of its ranks, in order. */
void job_text(
	const char *path, struct checkpoint *const *members, size_t count, struct buf *out);

#endif
