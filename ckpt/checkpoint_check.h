/*
 * checkpoint_check.h - what must hold between the notes of a checkpoint's files: indices,
 * offsets and counts that one names in another. What is checked here, readers need not check.
 */
#ifndef CKPT_CHECKPOINT_CHECK_H
#define CKPT_CHECKPOINT_CHECK_H

#include "ckpt/image_read.h"

int checkpoint_check_job(const struct image *job, struct err *e);
/* @pid: whose file it is to be. */
int checkpoint_check_process(
	const struct image *process, const struct image *job, int32_t pid, struct err *e);

#endif
