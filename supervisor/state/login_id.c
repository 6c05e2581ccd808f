/*
 * The login id (/proc/PID/loginuid) and the audit session that goes with it, by which the kernel's
 * audit log tells who has logged in. Where there is one already, setting it takes
 * CAP_AUDIT_CONTROL or is forbidden (audit_set_loginuid() in kernel/audit.c), and the session's
 * number cannot be chosen. So a restart inherits both, and a notice tells
 * where a process had others than we have.
 */
#include <string.h>

#include "lib/notices.h"
#include "supervisor/state/dump.h"
#include "supervisor/state/own_state.h"

#define UNSET "4294967295"

/* NULL where the kernel knows of no such thing. */
static char *read_id(pid_t pid, const char *which)
{
	cleanup_free char *path = xasprintf("/proc/%d/%s", pid, which);
	char *text = NULL;
	size_t len;

	return read_file(path, &text, &len, NULL) ? NULL : text;
}

static bool has_ours(pid_t task, const char *which, const char *ours)
{
	cleanup_free char *its = ours ? read_id(task, which) : NULL;

	return !its || !strcmp(its, ours);
}

/* Sessions' processes are many: the notice is the same for all. */
void dump_login_id(const struct dump *d)
{
	cleanup_free char *id = NULL;

	if (has_ours(d->process->task, "loginuid", d->own->login_id) &&
		has_ours(d->process->task, "sessionid", d->own->audit_session))
		return;
	id = read_id(d->process->task, "loginuid");
	notice_add("the program has set its login id (/proc/PID/loginuid is %s), which is not "
		   "saved: after a restart it has the id of the user who restarts it",
		id && strcmp(id, UNSET) ? id : "unset");
}
