/*
 * What signals do. Pending signals: pending_dump.c; a thread's mask is saved with the thread
 * (threads_dump.c).
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "supervisor/state/dump.h"
#include "supervisor/target/remote_query.h"

void ask_sigactions(struct remote_query *queries, struct kernel_sigaction *actions)
{
	/* All of them, also those at their default: flags and masks survive a SIG_DFL. */
	for (int i = 0; i < SIGACTIONS; i++)
		queries[i] = (struct remote_query){
			.nr = SYS_rt_sigaction,
			.args = {i + 1, 0, 0, 8},
			.out_arg = 3,
			.out = &actions[i],
			.size = sizeof(actions[i]),
		};
}

int dump_sigactions(struct dump *d, const struct remote_query *answers,
	const struct kernel_sigaction *actions, struct err *e)
{
	for (int i = 0; i < SIGACTIONS; i++) {
		const struct kernel_sigaction *sa = &actions[i];
		struct image_sigaction out = {sa->handler, sa->flags, sa->restorer, sa->mask};

		if (answers[i].result < 0)
			return err_set(e, -answers[i].result,
				"cannot read the action of signal %d", i + 1);
		image_writer_note(d->writer, IMAGE_NOTE_SIGACTIONS, &out, sizeof(out));
	}
	return 0;
}
