/*
 * inherited_check.h - descriptors from the process that has started trecr-run that would
 * make each checkpoint fail.
 */
#ifndef SUPERVISOR_START_INHERITED_CHECK_H
#define SUPERVISOR_START_INHERITED_CHECK_H

#include <stddef.h>
#include <sys/types.h>

/* Lists like "3 (pipe:[4711]), 4 (pipe:[4712])" of descriptors that the program will inherit, the caller's to
 * free; NULL: none. No checkpoint is possible while the program has one open. */
struct inherited {
	char *held; /* beside the standard streams: leads to other processes */
	/* A file that the program will write to, the standard streams included, in a directory that this user
	 * may not enter. */
	char *out_of_reach;
};

/* Before the program is started. @but is not looked at, -1: none such. */
struct inherited inherited_check(int but);

/* Close pipes and sockets, but the standard streams and @but, that a launcher has made for itself and left open
 * in its children: one of its @count processes has them open, and @above, which started it, has not.
 * Descriptors that a user gave the launcher to hand on stay. */
void inherited_close_launchers(const pid_t *launcher, size_t count, pid_t above, int but);

#endif
