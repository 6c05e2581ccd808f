/*
 * target/ptrace_policy.h - what the administrator of a machine, or of a container, may have forbidden: to attach
 * to processes, even to those of one's own user.
 */
#ifndef SUPERVISOR_TARGET_PTRACE_POLICY_H
#define SUPERVISOR_TARGET_PTRACE_POLICY_H

#include "lib/err.h"

/* What forbids this process to attach to its own children, and what would allow it, as the end of a sentence. NULL:
 * nothing that is known. */
const char *ptrace_policy_forbids(void);

/* Whether this process may attach to processes that it makes, while they have its memory: not with capabilities of its
 * program file. 0, or -1 with that reason. */
int ptrace_policy_check_clones(struct err *e);

#endif
