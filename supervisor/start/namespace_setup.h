/*
 * namespace_setup.h - what a process in a new namespace does before the program is made, and tells the supervisor.
 */
#ifndef SUPERVISOR_START_NAMESPACE_SETUP_H
#define SUPERVISOR_START_NAMESPACE_SETUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/err.h"
#include "supervisor/start/namespace_init.h"

/* ---- in the supervisor ---- */

/* Connected, for reports that arrive at ends[0]. */
int namespace_sockets(int ends[2], struct err *e);

/* The first report, of @who: 0 when it is NAMESPACE_READY. *sender gets the id that its sender has in our pid namespace. */
int namespace_await_report(int socket, const char *who, struct namespace_report *report,
	pid_t *sender, struct err *e);

/* clone3(2) has made no namespace, as errno says. Returns -1. */
int namespace_refused(bool user_namespace, struct err *e);

/* ---- in the new process ---- */

/* A supervisor that is gone needs no report: failure matters only to a reader that waits for an answer. @text: may be
 * NULL. */
int namespace_report(int socket, enum namespace_report_kind kind, int value, const char *text);

/* Report NAMESPACE_FAILED with errno and @what, and end. So do the others. */
void namespace_fail(const struct namespace_plan *plan, const char *what)
	__attribute__((noreturn));

void namespace_map_ids(const struct namespace_plan *plan);
void namespace_mount_proc(const struct namespace_plan *plan);
void namespace_mount_terminals(const struct namespace_plan *plan);

/* The standard streams lead to /dev/null then. */
void namespace_close_all_but(int socket);

#endif
