/*
 * inherited_check.h - descriptors from the process that has started trecr-run that would
 * make each checkpoint fail.
 */
#ifndef SUPERVISOR_START_INHERITED_CHECK_H
#define SUPERVISOR_START_INHERITED_CHECK_H

/* Before the program is started: the descriptors beside the standard streams, and beside @but, that it
 * will inherit and that lead to other processes: "3 (pipe:[4711]), 4 (pipe:[4712])", the caller's to
 * free. No checkpoint is possible while the program has one open. NULL: none. */
char *inherited_check(int but);

#endif
