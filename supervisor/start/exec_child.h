/*
 * exec_child.h - a child that executes a program, without a copy of this process before it:
 * fork(2) would copy page tables, and afterwards both would copy pages that they write to.
 */
#ifndef SUPERVISOR_START_EXEC_CHILD_H
#define SUPERVISOR_START_EXEC_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

enum exec_child_end {
	EXEC_CHILD_STARTED, /* has executed its program, or has been ended by a signal */
	EXEC_CHILD_FAILED,  /* there is none: fork(2) and execvp(3) will tell why */
};

/* Start the program with the signal mask and dispositions that signals_give_back() sets. What is
 * not plain is left to the caller: a name that PATH is searched for in vain, a script without "#!".
 * *stopped_by: after EXEC_CHILD_FAILED, the signal that has stopped it before it came to execute the program; 0:
 * none. */
enum exec_child_end exec_child(char *const argv[], pid_t *pid, int *stopped_by);

#endif
