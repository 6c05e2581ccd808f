/*
 * coordinate.h - one checkpoint of all members of a job: all are stopped before the first is
 * written, none resumes before the last is, and it has its name when all are on the disk
 * (checkpoint_part.h is the other side).
 */
#ifndef SUPERVISOR_JOB_COORDINATE_H
#define SUPERVISOR_JOB_COORDINATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "supervisor/job/reach_member.h"

struct coordinate_request {
	const char *dir;             /* of the job */
	const char *text;            /* the request for one member, as in control_protocol.h */
	bool stop;                   /* it is one to end the program */
	uint64_t deadline_ns;        /* CLOCK_MONOTONIC, 0: none */
	const char *deadline_option; /* that @deadline_ns comes from, for messages */
	uint64_t rest_ns;     /* how long MPI programs may take to come to rest together */
	int signalled;        /* rank that a signal has asked for it, -1: none */
	bool again;           /* as in turns_ask() */
	reach_local *connect; /* control_connect() */
	void (*notice)(const char *line);
};

/* Returned, with an error, when the checkpoint is complete but the members resume. */
#define COORDINATE_KEPT (-2)
/* Another checkpoint serves for this one, too: there is no path. */
#define COORDINATE_MERGED 1

/* *path, the caller's to free, is the checkpoint's; also with COORDINATE_KEPT. On failure all
 * members resume, and nothing is left of the attempt. */
int coordinate(const struct coordinate_request *request, char **path, struct err *e);

#endif
