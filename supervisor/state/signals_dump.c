/*
 * What signals do. Pending signals: pending_dump.c; a thread's mask is saved with the thread
 * (threads_dump.c).
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "supervisor/state/dump.h"
#include "supervisor/target/remote_query.h"

#define SIGNALS 64

/* The kernel's struct sigaction, as rt_sigaction(2) takes it. */
struct kernel_sigaction {
	uint64_t handler, flags, restorer, mask;
};

int dump_sigactions(struct dump *d, struct remote *r, struct err *e)
{
	struct kernel_sigaction actions[SIGNALS];
	struct remote_query queries[SIGNALS];

	/* All of them, also those at their default: flags and masks survive a SIG_DFL. */
	for (int i = 0; i < SIGNALS; i++)
		queries[i] = (struct remote_query){
			.nr = SYS_rt_sigaction,
			.args = {i + 1, 0, 0, 8},
			.out_arg = 3,
			.out = &actions[i],
			.size = sizeof(actions[i]),
		};
	if (remote_query(r, queries, SIGNALS, e))
		return -1;
	for (int i = 0; i < SIGNALS; i++) {
		const struct kernel_sigaction *sa = &actions[i];
		struct image_sigaction out = {sa->handler, sa->flags, sa->restorer, sa->mask};

		if (queries[i].result < 0)
			return err_set(e, -queries[i].result,
				"cannot read the action of signal %d", i + 1);
		image_writer_note(d->writer, IMAGE_NOTE_SIGACTIONS, &out, sizeof(out));
	}
	return 0;
}
