/*
 * inherited_check.h - descriptors from the process that has started trecr-run that would
 * make each checkpoint fail.
 */
#ifndef SUPERVISOR_START_INHERITED_CHECK_H
#define SUPERVISOR_START_INHERITED_CHECK_H

#include <stddef.h>
#include <sys/types.h>

/* Before the program is started: the descriptors beside the standard streams, and beside @but, that it
 * will inherit and that lead to other processes: "3 (pipe:[4711]), 4 (pipe:[4712])", the caller's to
 * free. No checkpoint is possible while the program has one open. NULL: none. */
char *inherited_check(int but);

/* Close pipes and sockets, but the standard streams and @but, that a launcher has made for itself and left open
 * in its children: one of its @count processes has them open, and @above, who has started it, has not.
 * What a user gave the launcher to hand on stays. */
void inherited_close_launchers(const pid_t *launcher, size_t count, pid_t above, int but);

#endif
