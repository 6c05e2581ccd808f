/*
 * memory/lazy_touch.h - of memory that is filled later: the pages that the kernel uses without waiting
 * for them. At the end of a thread these are the word that is cleared (set_tid_address(2)), and what its
 * list of robust mutexes leads to; faults of a thread that ends are not served (handle_userfault() in
 * fs/userfaultfd.c).
 */
#ifndef SUPERVISOR_MEMORY_LAZY_TOUCH_H
#define SUPERVISOR_MEMORY_LAZY_TOUCH_H

#include "supervisor/state/new_process.h"

/* Have them come, just before it runs. */
int lazy_touch(struct new_process *np);

#endif
