/*
 * memory_fits.h - whether the memory of a program can be here again: pages that processes have had in
 * common since fork(2) are saved for each of them, and after a restart each has its own.
 */
#ifndef SUPERVISOR_MEMORY_MEMORY_FITS_H
#define SUPERVISOR_MEMORY_MEMORY_FITS_H

#include "ckpt/store.h"
#include "lib/err.h"

/* 0, or -1 with @e saying by how much the private memory of @c's processes exceeds what this machine,
 * or the cgroups that the caller is in, could ever give; @shared bytes of it they have in common again. What is in use
 * by others is not looked at, and where processes return to cgroups of their own, neither are cgroups. */
int memory_fits(const struct checkpoint *c, uint64_t shared, struct err *e);

/* Tell @notice (NULL: nobody) when the processes will take a lot more memory than they may have taken before: what
 * @c has once for several of them each has for itself from now on, but for @shared bytes. */
void memory_tell_growth(
	const struct checkpoint *c, uint64_t shared, void (*notice)(const char *line));

#endif
