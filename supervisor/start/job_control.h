/*
 * job_control.h - stop with the program, so that the shell that started the supervisor sees
 * its job stopped, and resumes with it.
 */
#ifndef SUPERVISOR_START_JOB_CONTROL_H
#define SUPERVISOR_START_JOB_CONTROL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/types.h>

/* Whether all of @pid that is left is stopped by a job-control signal. */
bool job_control_stopped(pid_t pid);

/* The same where it has been stopped, for all we know: allows for the moment that a process
 * takes to stop again when a tracer has let it go. */
bool job_control_still_stopped(pid_t pid);

/*
 * Stop this process by @signal, as @root was. Returns when it has been continued: by a
 * shell, or by a helper that it leaves behind, when one of @fds has something or @root runs
 * again. The SIGCONT is then pending; job_control_is_wakeup() tells the helper's from a
 * shell's.
 */
void job_control_stop(int signal, pid_t root, struct pollfd *fds, size_t count);

/* SIGCONT that asks a stopped supervisor to look at its descriptors, no more: from its
 * helper, or from a client (trecr-ckpt). */
int job_control_wake(pid_t supervisor);
bool job_control_is_wakeup(const struct signalfd_siginfo *info);

#endif
