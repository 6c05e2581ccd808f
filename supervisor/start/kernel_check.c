/*
 * kernel_check.c - the release of the kernel.
 */
#include "supervisor/start/kernel_check.h"

#include "lib/kernel_release.h"

/* From 5.13 on ptrace(2) shows where a thread has registered its rseq area: without that, a program
 * comes back as if it had none, and takes the processor that it was on for the one that it is on. From
 * 5.14 on it shows whether a program has set the sizes of a socket's buffers (SO_BUF_LOCK), and of
 * which network namespace a socket is. */
#define MAJOR 5
#define MINOR 14

int kernel_check(struct err *e)
{
	if (kernel_is_at_least(MAJOR, MINOR))
		return 0;
	return err_set(e, 0, "Linux %s is too old: trecr needs Linux %d.%d or later",
		kernel_release(), MAJOR, MINOR);
}
