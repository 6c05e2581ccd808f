/*
 * launcher_restore.h - an MPI program that is brought back belongs to the launcher that has started
 * trecr-restart: its lower half is given that one's variables and connection.
 */
#ifndef SUPERVISOR_SPLIT_LAUNCHER_RESTORE_H
#define SUPERVISOR_SPLIT_LAUNCHER_RESTORE_H

#include <stdbool.h>

#include "lib/err.h"
#include "shared/records.h"
#include "supervisor/target/process.h"

/* The descriptor of this process that leads to its launcher; -1: there is none. */
int launcher_connection(void);

/* Whether the process, which is stopped, was started to have an MPI library in its lower half; and whether it has one already. */
bool launcher_may_be_wanted(const struct process *p);
bool launcher_is_wanted(const struct process *p);
/* Fill @l, which is zero, with the variables of this process's launcher, and with which MPI library is to be loaded, as
 * mpi_library_choose(@library, @former ...) says. Fails if they are too long. */
int launcher_describe(
	struct records_launcher *l, const char *library, unsigned former, struct err *e);
/* Before its lower half is started: variables for it. With @launcher those of launcher_describe(); and @other, unless it is NULL. The same where it has none
 * yet, for when it comes to have one. */
int launcher_give_variables(struct process *p, bool launcher, const char *library,
	unsigned former, const char *other, struct err *e);
/* When it has been started, before MPI is initialised. */
int launcher_give_connection(struct process *p, struct err *e);

#endif
