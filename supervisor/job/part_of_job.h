/*
 * part_of_job.h - at a restart: which part of a job's checkpoint is this rank's.
 */
#ifndef SUPERVISOR_JOB_PART_OF_JOB_H
#define SUPERVISOR_JOB_PART_OF_JOB_H

#include <stdint.h>

#include "lib/err.h"

struct part_of_job {
	char *whole; /* path of the job's checkpoint; NULL: @image is of a program by itself */
	char *image; /* path of our part of it */
	uint8_t id[16]; /* of the part */
	int rank, size; /* as the launcher says; 0: there is none */
};

/* Which image to restart, of what @path names. Fails, with only @p->rank set, when the launcher has started another
 * number of ranks than were saved. A path that cannot be read is @p->image: opening it says why. */
int part_of_job_find(const char *path, struct part_of_job *p, struct err *e);

#endif
