/* The end of a program that must not run any longer. */
#include "supervisor/run/kill_program.h"

#include <signal.h>
#include <time.h>

#include "lib/procfs.h"

/* Ten seconds: what is not gone by then sits in a device, or a file system without its server. */
#define PAUSE_NS 1000000
#define ROUNDS   10000

static bool was_there_before(const struct supervisor *s, pid_t pid, const struct proc_stat *st)
{
	for (size_t i = 0; i < buf_count(&s->former_children, struct proc_identity); i++) {
		const struct proc_identity *child =
			buf_at(&s->former_children, struct proc_identity, i);

		if (child->pid == pid && child->start_time == st->field[STAT_START_TIME])
			return true;
	}
	return false;
}

/* All descendants of @pid. Returns how many were found alive: a child that a process has made before
 * it was killed is found in the next round, as it comes to its parent or to us. */
static size_t kill_below(const struct supervisor *s, pid_t pid)
{
	cleanup_free pid_t *children = NULL;
	size_t count, killed = 0;

	if (procfs_children(pid, &children, &count, NULL))
		return 0;
	for (size_t i = 0; i < count; i++) {
		struct proc_stat st;

		if (procfs_stat(children[i], children[i], &st, NULL) ||
			was_there_before(s, children[i], &st))
			continue;
		killed += kill_below(s, children[i]);
		if (st.state == 'Z')
			continue;
		/* Nobody has reaped it, or will but its parent, which has been killed as well. */
		(void)kill(children[i], SIGKILL);
		killed++;
	}
	return killed;
}

void kill_program(const struct supervisor *s)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_NS};

	for (int i = 0; i < ROUNDS && kill_below(s, getpid()); i++)
		(void)nanosleep(&pause, NULL);
}
