/*
 * restore/zombie_end.h - the end of a process that is a zombie in the image.
 */
#ifndef SUPERVISOR_RESTORE_ZOMBIE_END_H
#define SUPERVISOR_RESTORE_ZOMBIE_END_H

#include "ckpt/image.h"
#include "lib/err.h"

/* In a process of its own: end as @entry did, under the name @comm. Returns only in case of
 * failure. */
int restore_die(const struct image_job_process *entry, const char *comm, struct err *e);

#endif
