/*
 * loop.h - the supervisor's one event loop: children, signals, the clock, requests.
 */
#ifndef SUPERVISOR_RUN_LOOP_H
#define SUPERVISOR_RUN_LOOP_H

#include "lib/err.h"
#include "supervisor/control/control_socket.h"
#include "supervisor/run/take_checkpoint.h"
#include "supervisor/start/supervisor.h"

/* To be called before the root process is made, in the process that will supervise it: takes
 * over the signals (signal_forwarding.h), becomes subreaper, opens the control socket. */
int loop_prepare(struct supervisor *s, struct err *e);

/* Between the two, while the program cannot be made: for @ms milliseconds, answer all requests
 * with the error @why. */
void loop_put_off(struct supervisor *s, int ms, const char *why);

/* The same for members of a job: serve requests, from other machines too, by @handler for at
 * most @ms milliseconds, once. */
void loop_serve(struct supervisor *s, int ms, control_handler *handler, void *arg);

/* A checkpoint has been taken: it is, if @served, what a signal asked for before the
 * program was frozen. Other signals that have come meanwhile ask for another one. */
void loop_signals_served(struct supervisor *s, bool served);

/* Supervise until the root process has ended; returns its exit status as trecr-run reports
 * it (the program's, or 128 + signal). Standard input and output are let go, so that the
 * program's are what others see of them. */
int loop_run(struct supervisor *s);

/*
 * While @taking is under way: wait for children, forward signals and answer questions how
 * things are; requests for other checkpoints wait. Signals for the program are held back while
 * it is traced, so that it gets them when it runs on. The end of the connection @client (-1:
 * none) cancels the checkpoint; SIGINT cancels a checkpoint that is to end the program.
 */
void loop_attend(struct supervisor *s, struct checkpoint_taking *taking, int client);

/* How far the checkpoint that is being taken is, and how many requests wait behind it; false:
 * none is. */
bool loop_looks(const struct supervisor *s, struct under_way_report *report, unsigned *waiting);

/* Undo loop_prepare() as far as others see it: removes the control socket. loop_run() does
 * it by itself; this is for a start that fails. */
void loop_end(struct supervisor *s);

#endif
