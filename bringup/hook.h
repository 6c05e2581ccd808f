/*
 * hook.h - what becomes of the system calls that the lower half's ld.so and libc make.
 */
#ifndef BRINGUP_HOOK_H
#define BRINGUP_HOOK_H

#include "bringup/site.h"
#include "bringup/space.h"

/* Is this call led through hook_ldso or hook_libc? */
int hook_wants(int nr);
int hook_wants_of_ldso(int nr);
int hook_wants_of_library(int nr);

/* For SITE_ENTRY: 1 and the result in r->nr, or 0 to let the call be made as it is. */
int hook_ldso(struct site_registers *r);
int hook_libc(struct site_registers *r);

extern int hook_fd_base;

/* See core_functions.place_next. */
void hook_place_next(uintptr_t address);

/* Set by core.c: called for each mapping the lower ld.so makes, to patch the libc's text. */
void core_mapped(long address, long size, int prot, int fd, long offset);

/* mmap(2) with the address chosen from @part. */
long hook_mmap(enum space_part part, const long args[6]);

#endif
