/*
 * signal_forwarding.h - the signals that reach the supervisor: taken over while it supervises,
 * given back to the program, forwarded to it.
 */
#ifndef SUPERVISOR_START_SIGNAL_FORWARDING_H
#define SUPERVISOR_START_SIGNAL_FORWARDING_H

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "lib/err.h"

/* Block all signals, remember how they were treated, and open the signalfd(2) they can be
 * read from (non-blocking). -1 on failure. */
int signals_take(struct err *e);

/* Whether SIGCHLD can be read from @fd, of signals_take(); else it stays pending. */
void signals_hear_children(int fd, bool hear);

/* Mask and dispositions as they were before signals_take(). For a child, before execve. */
void signals_give_back(void);

/* Whether the mask is all that signals_give_back() changes: *mask. */
bool signals_mask_suffices(sigset_t *mask);

/* Whether @info is a signal that somebody sent to this process rather than to the program
 * too: by kill(2) and its like, from outside the program's tree. What the terminal and the
 * kernel send reaches the whole process group, and what a process of the tree sends to its
 * own group has reached the program. */
bool signals_for_us_alone(const struct signalfd_siginfo *info);

/* Pass @info on to the process behind @pidfd (-1, where pidfds are refused: to @child, which has not been waited for),
 * with its value when it has one. A process that has ended is no error. */
int signals_forward(int pidfd, pid_t child, const struct signalfd_siginfo *info, struct err *e);

#endif
