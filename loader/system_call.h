/*
 * system_call.h - system calls of the loader, which has no libc.
 *
 * This header stands alone: the loader has no libc.
 */
#ifndef LOADER_SYSTEM_CALL_H
#define LOADER_SYSTEM_CALL_H

/* @nr_and_args: the number, and six arguments. What the kernel returns: -errno for an error. */
long batch_syscall(const unsigned long *nr_and_args);

static inline int is_error(long result)
{
	return result < 0 && result > -4096;
}

#endif
