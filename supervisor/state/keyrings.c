/*
 * Keyrings (keyrings(7)) are not saved: the kernel does not show all that keys hold. A restarted program
 * inherits the session keyring of trecr-restart; a notice says what keyrings a process has apart
 * from that.
 */
#include <errno.h>
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/notices.h"
#include "supervisor/state/dump.h"
#include "supervisor/target/remote_query.h"

enum { THREAD, PROCESS, SESSION, USER_SESSION, KEYRINGS };

/* Without making any, but that a process without a session keyring gets its user's for one, as
 * whenever it asks. */
static int ask_keyrings(struct remote *r, int64_t ids[KEYRINGS], struct err *e)
{
	static const int special[KEYRINGS] = {KEY_SPEC_THREAD_KEYRING, KEY_SPEC_PROCESS_KEYRING,
		KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_SESSION_KEYRING};
	struct remote_query queries[KEYRINGS] = {0};

	for (int i = 0; i < KEYRINGS; i++) {
		queries[i].nr = SYS_keyctl;
		queries[i].args[0] = KEYCTL_GET_KEYRING_ID;
		queries[i].args[1] = (uint32_t)special[i];
	}
	if (remote_query(r, queries, KEYRINGS, e))
		return -1;
	for (int i = 0; i < KEYRINGS; i++)
		ids[i] = queries[i].result;
	return 0;
}

int dump_keyrings(struct dump *d, struct remote *r, struct err *e)
{
	long ours = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
	const struct process *p = d->process;
	int64_t ids[KEYRINGS];

	/* Containers may forbid to ask, and to have any. */
	if (ours < 0)
		return 0;
	if (ask_keyrings(r, ids, e))
		return -1;
	if (ids[THREAD] > 0 || ids[PROCESS] > 0)
		notice_add(
			"process %d (%s) has a keyring of its own, which is not saved: after a "
			"restart it has none",
			p->pid, p->comm);
	if (ids[SESSION] > 0 && ids[SESSION] != ours && ids[SESSION] != ids[USER_SESSION])
		notice_add("process %d (%s) has joined a session keyring, which is not saved: "
			   "after a restart it has that of trecr-restart",
			p->pid, p->comm);
	return 0;
}
