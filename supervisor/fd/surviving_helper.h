/*
 * surviving_helper.h - do something that is not left half done when the supervisor is killed.
 *
 * What can only be seen by taking it out is taken out and put back by a process of its own. It
 * shares our memory, has duplicates of our descriptors, and is reached by no signal that is
 * meant for us.
 */
#ifndef SUPERVISOR_FD_SURVIVING_HELPER_H
#define SUPERVISOR_FD_SURVIVING_HELPER_H

#include "lib/err.h"

/* @f(@arg), and what it returns; -1 when there can be no process. While something is taken out
 * @f allocates no memory, except in order to report a failure: the killed process may have
 * held the allocator's locks. */
int run_in_surviving_helper(int (*f)(void *arg), void *arg, struct err *e);

/* The same in a user namespace of its own, in which it has all privileges: -1, too, where there
 * may be none. */
int run_in_surviving_namespace(int (*f)(void *arg), void *arg, struct err *e);

#endif
