/*
 * start/kernel_check.h - whether this kernel tells all that a checkpoint needs.
 */
#ifndef SUPERVISOR_START_KERNEL_CHECK_H
#define SUPERVISOR_START_KERNEL_CHECK_H

#include "lib/err.h"

/* 0, or -1 with a reason. */
int kernel_check(struct err *e);

#endif
