/*
 * thaw.h - what becomes of a frozen tree: it resumes, or is ended.
 */
#ifndef SUPERVISOR_TREE_THAW_H
#define SUPERVISOR_TREE_THAW_H

#include "supervisor/target/process.h"

/* Stop those again that were sent a SIGSTOP while system calls were run in them, which took it
 * away. To be done before anything of them runs. */
void thaw_stop_again(struct tree *tree);

/* Resume all from where they were (threads' regs, where regs_changed), and free @tree.
 * Goes through to the end whatever fails. */
int thaw(struct tree *tree, struct err *e);

/* All are to end when the supervisor does; until thaw(). */
int thaw_set_exitkill(struct tree *tree, struct err *e);

/* End all processes of a frozen tree, and free @tree. *ending: a pidfd of each, for
 * thaw_await_ends(), once the thread that had frozen them is no more. */
void thaw_kill(struct tree *tree, struct buf *ending);

/* Until all of *ending have ended (and ours have been waited for), so that what they held is
 * free: ids, names of sockets, memory of devices. Not for longer than 30 s. Closes the pidfds.
 */
void thaw_await_ends(struct buf *ending);

#endif
