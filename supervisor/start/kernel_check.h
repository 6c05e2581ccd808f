/*
 * start/kernel_check.h - whether this kernel tells all that a checkpoint needs.
 */
#ifndef SUPERVISOR_START_KERNEL_CHECK_H
#define SUPERVISOR_START_KERNEL_CHECK_H

#include "lib/err.h"

/* 0, or -1 with a reason. */
int kernel_check(struct err *e);

/* The same before a restart, which attaches to processes that have this one's memory (ptrace_policy_check_clones()). */
int kernel_check_restart(struct err *e);

/* System calls that every checkpoint needs, and that fail here whatever they are asked, as a seccomp filter of a container
 * has it: "ptrace(2), kcmp(2)", the caller's to free; NULL: none. */
char *kernel_refused(void);

/* What forbids this process to attach to its own children, and what would allow it; NULL: nothing that is known
 * (target/ptrace_policy.h). */
const char *kernel_forbids_ptrace(void);

#endif
