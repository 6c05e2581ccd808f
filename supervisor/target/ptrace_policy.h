/*
 * target/ptrace_policy.h - what the administrator of a machine, or of a container, may have forbidden: to attach
 * to processes, even to those of one's own user.
 */
#ifndef SUPERVISOR_TARGET_PTRACE_POLICY_H
#define SUPERVISOR_TARGET_PTRACE_POLICY_H

/* What forbids this process to attach to its own children, and what would allow it, as the end of a sentence. NULL:
 * nothing that is known. */
const char *ptrace_policy_forbids(void);

#endif
