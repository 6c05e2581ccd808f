/*
 * seccomp.h - seccomp(2): filters that a program has put itself under, and strict mode.
 *
 * Both can only be read, and only be kept from acting on what is run in the program, by a
 * process that has CAP_SYS_ADMIN in the initial user namespace and is under no filter itself.
 */
#ifndef SUPERVISOR_STATE_SECCOMP_H
#define SUPERVISOR_STATE_SECCOMP_H

#include "ckpt/image_read.h"
#include "ckpt/image_write.h"
#include "lib/err.h"
#include "supervisor/target/batch_plan.h"
#include "supervisor/target/process.h"

/* Before anything is run in the thread @t: its filters, if it has any of its own, do not act
 * until it is let go. Where that is not allowed it is refused. @own_status is the text of the supervisor's own
 * /proc/PID/status. */
int seccomp_suspend(struct process *p, struct thread *t, const char *own_status, struct err *e);

/* Filters of all threads of @p, for which that was done. */
int seccomp_dump(struct process *p, struct image_writer *w, struct err *e);

/* Before anything is run in a new process that will have some: as seccomp_suspend(). */
int seccomp_suspend_new(struct tracee *t, const struct image *img, struct err *e);

/* Let thread @tid put itself under them: as long as it has privileges, without which that takes
 * no_new_privs. */
void seccomp_plan(
	struct plan *p, struct batch_builder *b, const struct image *img, int32_t tid);

#endif
