/*
 * target/fetch_new_fd.h - descriptors that are made by a system call that is run in another process,
 * and fetched.
 */
#ifndef SUPERVISOR_TARGET_FETCH_NEW_FD_H
#define SUPERVISOR_TARGET_FETCH_NEW_FD_H

#include "supervisor/target/remote.h"

/* Descriptor @number of the process of @r, in its bracket. -1 on failure. */
int fetch_new(const struct remote *r, int64_t number, struct err *e);

/* A userfaultfd of its memory, made with @flags of userfaultfd(2), of which it has no descriptor. -1
 * on failure. */
int fetch_new_uffd(struct remote *r, int flags, struct err *e);

#endif
