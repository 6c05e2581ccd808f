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

static long own_session_keyring(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
}

/* Without making any, but that a process without a session keyring gets its user's for one, as
 * whenever it asks. */
size_t ask_keyrings(struct remote_query *queries)
{
	static const int special[KEYRINGS] = {KEY_SPEC_THREAD_KEYRING, KEY_SPEC_PROCESS_KEYRING,
		KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_SESSION_KEYRING};

	_Static_assert(KEYRINGS == KEYRING_QUERIES, "of each kind");
	/* Containers may forbid to ask, and to have any. */
	if (own_session_keyring() < 0)
		return 0;
	for (int i = 0; i < KEYRINGS; i++)
		queries[i] = (struct remote_query){.nr = SYS_keyctl,
			.args = {KEYCTL_GET_KEYRING_ID, (uint32_t)special[i]}};
	return KEYRINGS;
}

void dump_keyrings(const struct dump *d, const struct remote_query *answers)
{
	const struct process *p = d->process;
	int64_t ids[KEYRINGS];

	for (int i = 0; i < KEYRINGS; i++)
		ids[i] = answers[i].result;
	if (ids[THREAD] > 0 || ids[PROCESS] > 0)
		notice_add(
			"process %d (%s) has a keyring of its own, which is not saved: after a "
			"restart it has none",
			p->pid, p->comm);
	if (ids[SESSION] > 0 && ids[SESSION] != own_session_keyring() &&
		ids[SESSION] != ids[USER_SESSION])
		notice_add("process %d (%s) has joined a session keyring, which is not saved: "
			   "after a restart it has that of trecr-restart",
			p->pid, p->comm);
}
