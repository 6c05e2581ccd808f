/*
 * memory/uffd_anchor.h - what keeps userfaultfds open for as long as a program has its memory, whatever
 * else is killed: were the last descriptor of one closed, missing pages would read as zeros.
 *
 * They are registered with an io_uring that the program has mapped (a page that it cannot use, at the
 * end of trecr's window) and has no descriptor of. Children that it makes inherit the mapping.
 */
#ifndef SUPERVISOR_MEMORY_UFFD_ANCHOR_H
#define SUPERVISOR_MEMORY_UFFD_ANCHOR_H

#include "lib/procfs.h"
#include "shared/batch.h"
#include "supervisor/target/remote.h"

#define ANCHOR_SIZE 4096ul
#define ANCHOR_AT   (LOADER_RANGE + LOADER_RANGE_SIZE - ANCHOR_SIZE)

/* Map one in the process of @r. Returns a descriptor of it, -1 on failure. */
int anchor_make(struct remote *r, struct err *e);
bool anchor_is(const struct vma *v);

/* One ring, for userfaultfds of several address spaces. */
struct anchor;

/* @ring becomes its own. NULL when nothing can be registered with it. */
struct anchor *anchor_open(int ring);
/* For an address space more. NULL for NULL. */
struct anchor *anchor_share(struct anchor *a);
/* Returns a number for anchor_release(), or -1 when that cannot be (any more). */
int anchor_hold(struct anchor *a, int uffd);
/* @number may be -1. */
void anchor_release(struct anchor *a, int number);
/* Of the last address space: nothing is held any more. Of NULL nothing. */
void anchor_close(struct anchor *a);

#endif
