/*
 * Threads with a working directory, root directory and umask of their own (unshare(CLONE_FS)).
 */
#include <errno.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/limits.h"
#include "lib/shown_path.h"
#include "supervisor/state/dump.h"

/* 0: the same. */
static int compare_directories(pid_t a, pid_t b, struct err *e)
{
	int r = syscall(SYS_kcmp, a, b, KCMP_FS, 0L, 0L);

	return r < 0 ? limit_err(e, errno, SYS_kcmp, "cannot compare directories (kcmp)") : r;
}

/* They would have to be made by one another. */
static int refuse_common(
	const struct dump *d, const struct tree *tree, const struct thread *t, struct err *e)
{
	for (size_t i = 0; i < tree->living; i++) {
		const struct process *p = tree->processes[i];

		for (size_t k = 0; k < p->thread_count; k++) {
			pid_t other = p->threads[k].tracee.tid;
			int r = other == t->tracee.tid
					? 1
					: compare_directories(other, t->tracee.tid, e);

			if (r < 0)
				return -1;
			if (!r)
				return err_set(e, 0,
					"threads %d and %d share a working directory that is "
					"not the one of process %d (%s), which is not "
					"supported",
					other, t->tracee.tid, d->process->pid,
					d->process->comm);
		}
	}
	return 0;
}

static int read_directory(
	struct dump *d, pid_t tid, const char *name, uint32_t *string, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/%s", d->process->pid, tid, name);
	cleanup_free char *target = read_shown_link(path, e);
	struct stat is;

	if (!target)
		return -1;
	/* A thread makes its own by their names (add_directories() in
	 * state/threads_restore.c). */
	if (stat(path, &is) || !is.st_nlink)
		return err_set(e, 0,
			"the %s directory of thread %d of process %d (%s), which is the "
			"thread's own (unshare(CLONE_FS)), has been removed: %s",
			strcmp(name, "cwd") ? "root" : "working", tid, d->process->pid,
			d->process->comm, target);
	*string = image_writer_string(d->writer, target);
	return 0;
}

static int dump_thread(
	struct dump *d, const struct tree *tree, const struct thread *t, struct err *e)
{
	struct image_directories own = {.tid = t->vtid};
	pid_t tid = t->tracee.tid;

	if (refuse_common(d, tree, t, e) || read_directory(d, tid, "cwd", &own.cwd, e) ||
		read_directory(d, tid, "root", &own.root, e))
		return -1;
	own.umask = status_number(t->status, "Umask", 8);
	image_writer_incompat(d->writer, IMAGE_INCOMPAT_APART);
	image_writer_note(d->writer, IMAGE_NOTE_DIRECTORIES, &own, sizeof(own));
	return 0;
}

int dump_directories(struct dump *d, const struct tree *tree, struct err *e)
{
	struct process *p = d->process;

	for (size_t i = 0; i < p->thread_count; i++) {
		pid_t tid = p->threads[i].tracee.tid;
		int r = tid == p->task ? 0 : compare_directories(p->task, tid, e);

		if (r < 0 || (r && dump_thread(d, tree, &p->threads[i], e)))
			return -1;
	}
	return 0;
}
