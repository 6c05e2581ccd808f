/*
 * checkpoint_turns.h - checkpoints of a job are taken one at a time: the supervisor of rank 0
 * gives turns. A member that takes one holds a connection to it (request "turn" of
 * control_protocol.h) until it is done, and says now and then that it is still there.
 *
 * A signal that reaches all ranks makes one checkpoint: a rank's own signal is taken for the
 * same as another rank's, if it comes soon after and has not been taken into account yet.
 */
#ifndef SUPERVISOR_JOB_CHECKPOINT_TURNS_H
#define SUPERVISOR_JOB_CHECKPOINT_TURNS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#define TURN_GRANTED "turn"   /* answers */
#define TURN_MERGED  "merged" /* another checkpoint is this one, too */
#define TURN_WAIT    "wait"   /* said by the holder of the turn */

#define TURNS_MAX 64

struct turns;

struct turns *turns_new(void);
/* Nobody has, or gets, a turn any more. */
void turns_close(struct turns *t);

/* @fd, ours to close, is the connection of who wants to take a checkpoint: for a signal that
 * rank @signalled got, -1: for another reason. @again: that rank has had a signal before the
 * program was frozen for the last checkpoint, and this is another one. */
void turns_ask(struct turns *t, int fd, int signalled, bool again);

/* Fill @fds (room for TURNS_MAX) with what to poll(2) for; returns how many. */
size_t turns_poll(const struct turns *t, struct pollfd *fds);
/* Serve what poll(2) found. */
void turns_serve(struct turns *t, const struct pollfd *fds, size_t count);
/* Milliseconds until turns_serve() is to be called anyway, -1: not at all. */
int turns_wait_ms(const struct turns *t);

#endif
