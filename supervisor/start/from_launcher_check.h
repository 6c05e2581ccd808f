/*
 * from_launcher_check.h - descriptors from the process that has started trecr-run that would
 * make each checkpoint fail.
 */
#ifndef SUPERVISOR_START_FROM_LAUNCHER_CHECK_H
#define SUPERVISOR_START_FROM_LAUNCHER_CHECK_H

/* Before the program is started: a descriptor beside the standard streams that it will inherit
 * and that leads to another process: "3 (pipe:[4711])", the caller's to free. No checkpoint is
 * possible while the program has it open. NULL: none. */
char *inherited_obstacle(void);

#endif
