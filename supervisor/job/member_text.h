/*
 * member_text.h - a member's file, as text:
 *
 *	member RANK SIZE PID HOST KEEP FROM
 *	machine ID START_TIME
 *	interval SECONDS
 *	mpi BEGUN VERDICT REFUSED	always as long: it changes while others read (mpi_ranks.h)
 *	local RANKS
 *	port PORT
 *	address ADDRESS		any number of them, the first to be tried first
 *	secret HEX
 *	end
 *
 * Without its last line it is not complete.
 */
#ifndef SUPERVISOR_JOB_MEMBER_TEXT_H
#define SUPERVISOR_JOB_MEMBER_TEXT_H

#include "supervisor/job/member_files.h"

#define MEMBER_TEXT_MAX 1024

/* The caller's to free. */
char *member_text(const struct job_member *m);
/* -1: it is none, or not complete. */
int member_parse(const char *text, struct job_member *m);

#endif
