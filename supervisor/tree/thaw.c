/*
 * thaw.c - detaches from all threads, or kills them all and waits for their ends.
 */
#include "supervisor/tree/thaw.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"

/* Stop processes again whose stops the freeze has consumed. A SIGCONT that came since then is still
 * pending, as nothing runs. A SIGCONT that comes later cancels the stop, which is sent before
 * anything runs. */
void thaw_stop_again(struct tree *tree)
{
	for (size_t i = 0; i < tree->count; i++) {
		struct process *p = tree->processes[i];

		if (p->stop_owed && !procfs_is_pending(p->pid, SIGCONT))
			kill(p->pid, SIGSTOP);
		p->stop_owed = false;
	}
}

int thaw(struct tree *tree, struct err *e)
{
	int failed = 0;

	thaw_stop_again(tree);
	for (size_t i = 0; i < tree->count; i++) {
		struct process *p = tree->processes[i];

		for (size_t k = 0; k < p->thread_count; k++) {
			struct thread *t = &p->threads[k];

			if (t->tracee.state == TRACEE_GONE)
				continue;
			if (t->regs_changed)
				failed |= tracee_set_regs(
					&t->tracee, &t->regs, failed ? NULL : e);
			failed |= tracee_detach(&t->tracee, 0, failed ? NULL : e);
		}
	}
	tree_free(tree);
	return failed ? -1 : 0;
}

/* What runs (the parent of a vfork(2), which waits for its child) cannot be told so. */
int thaw_set_exitkill(struct tree *tree, struct err *e)
{
	for (size_t i = 0; i < tree->count; i++)
		for (size_t k = 0; k < tree->processes[i]->thread_count; k++) {
			struct tracee *t = &tree->processes[i]->threads[k].tracee;

			if (t->state == TRACEE_STOPPED && tracee_set_exitkill(t, e) &&
				t->state != TRACEE_GONE)
				return -1;
		}
	return 0;
}

void thaw_kill(struct tree *tree, struct buf *ending)
{
	for (size_t i = 0; i < tree->count; i++) {
		int fd = syscall(SYS_pidfd_open, tree->processes[i]->pid, 0);

		if (fd >= 0)
			buf_push(ending, int, &fd);
	}
	/* From the leaves up, so that nobody sees a child of its end by a signal. */
	for (size_t i = tree->count; i-- > 0;)
		kill(tree->processes[i]->pid, SIGKILL);
	for (size_t i = 0; i < tree->count; i++)
		for (size_t k = 0; k < tree->processes[i]->thread_count; k++)
			tracee_detach(&tree->processes[i]->threads[k].tracee, 0, NULL);
	tree_free(tree);
}

void thaw_await_ends(struct buf *ending)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + 30000000000ull;

	for (size_t i = 0; i < buf_count(ending, int); i++) {
		struct pollfd p = {.fd = *buf_at(ending, int, i), .events = POLLIN};
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		siginfo_t info;

		if (now < end && poll(&p, 1, (end - now) / 1000000) > 0)
			(void)waitid(P_PIDFD, p.fd, &info, WEXITED | WNOHANG | __WALL);
		close(p.fd);
	}
	buf_free(ending);
}
