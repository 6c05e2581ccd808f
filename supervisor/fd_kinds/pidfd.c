/*
 * fd_kinds/pidfd.c - pidfd_open(2).
 *
 * A pidfd can only be made when its process is there, and descriptors that processes share are made
 * before. So all get a descriptor that leads elsewhere at first, and each process puts its own pidfd
 * in its place: processes that shared a description have one each then, which nothing can tell
 * but kcmp(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/procfs.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/target/process.h"
#include "supervisor/target/remote.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

bool fd_pidfd_match(const struct fd_dump *d, const struct fd_source *s)
{
	return !strcmp(s->link, "anon_inode:[pidfd]") || !strncmp(s->link, "pidfd:[", 7);
}

static bool is_saved(const struct fd_dump *d, pid_t pid)
{
	for (size_t i = 0; d->tree && i < d->tree->count; i++)
		if (d->tree->processes[i]->pid == pid)
			return true;
	return false;
}

static bool is_saved_thread(const struct fd_dump *d, pid_t tid)
{
	for (size_t i = 0; d->tree && i < d->tree->living; i++) {
		const struct process *p = d->tree->processes[i];

		for (size_t k = 0; k < p->thread_count; k++)
			if (p->threads[k].tracee.tid == tid)
				return true;
	}
	return false;
}

/* "Pid:" is -1 when it has ended and was waited for. */
int fd_pidfd_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	int pid = strtol(status_value(s->info, "Pid"), NULL, 10);

	bool thread = s->flags & PIDFD_THREAD;

	if (thread && pid < 0)
		return err_set(e, 0, "pidfds of threads that have ended are not supported");
	if (pid < 0)
		return 0;
	if (thread && !is_saved_thread(d, pid))
		return err_set(e, 0,
			"it is the pidfd of thread %d, which is not being saved or has ended",
			pid);
	if (!thread && !is_saved(d, pid))
		return err_set(
			e, 0, "it is the pidfd of process %d, which is not being saved", pid);
	x->args[0] = status_last_number(s->info, "NSpid");
	return 0;
}

int fd_pidfd_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	return x->args[0] <= INT32_MAX ? 0 : err_set(e, 0, "the image is damaged: a pidfd");
}

static int end_at_once(void *arg)
{
	return 0;
}

/* A process that stands for a process that has ended, whose pidfds have the same inode (pidfs).
 * It is waited for when all pidfds are there. */
struct ended {
	uint64_t inode;
	pid_t pid;
};

static pid_t find_ended(const struct fd_restore *r, uint64_t inode)
{
	for (size_t i = 0; i < buf_count(&r->ended, struct ended); i++)
		if (buf_at(&r->ended, struct ended, i)->inode == inode)
			return buf_at(&r->ended, struct ended, i)->pid;
	return 0;
}

/* The restart does not count it among its processes (CLONE_UNTRACED). */
static pid_t make_ended(struct fd_restore *r, uint64_t inode, struct err *e)
{
	char stack[4096] __attribute__((aligned(16)));
	struct ended new = {.inode = inode};

	new.pid = clone(end_at_once, stack + sizeof(stack),
		CLONE_VM | CLONE_VFORK | CLONE_UNTRACED | SIGCHLD, NULL);
	if (new.pid < 0)
		return err_set(e, errno, "cannot create a pidfd of a process that has ended");
	buf_push(&r->ended, struct ended, &new);
	return new.pid;
}

void fd_pidfds_finish(struct fd_restore *r)
{
	for (size_t i = 0; i < buf_count(&r->ended, struct ended); i++)
		while (waitpid(buf_at(&r->ended, struct ended, i)->pid, NULL, 0) < 0 &&
			errno == EINTR)
			;
	buf_free(&r->ended);
}

int fd_pidfd_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	pid_t pid = x->args[0] ? getpid() : find_ended(r, x->inode);
	int fd;

	if (!pid)
		pid = make_ended(r, x->inode, e);
	if (pid < 0)
		return -1;
	fd = pidfd_open(pid, 0);
	return fd < 0 ? err_set(e, errno, "cannot create a pidfd") : fd_lift(r, fd, e);
}

static int place_pidfd(const struct image_description *x, int at, struct err *e)
{
	int fd = pidfd_open(x->args[0], x->flags & PIDFD_NONBLOCK);

	if (fd < 0)
		return err_set(
			e, errno, "cannot create a pidfd of process %d", (int)x->args[0]);
	if (dup2(fd, at) < 0)
		return err_set(e, errno, "cannot create descriptor %d", at);
	close(fd);
	return 0;
}

static const struct image_description *pidfd_at(const struct fd_restore *r, size_t i)
{
	const struct image_description *x = &r->descriptions[r->fds[i].description];

	/* Threads are not there before the end: restore/task_files_restore.c. */
	return x->kind == IMAGE_FD_PIDFD && x->args[0] && !fd_pidfd_needs_threads(x) ? x : NULL;
}

/* The first number of a description within this process, at or before index @i. */
static size_t first_of(const struct fd_restore *r, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (r->fds[k].description == r->fds[i].description)
			return k;
	return i;
}

int fd_pidfd_place(const struct fd_restore *r, struct err *e)
{
	for (size_t i = 0; i < r->fd_count; i++) {
		const struct image_description *x = pidfd_at(r, i);
		size_t first;

		if (!x)
			continue;
		first = first_of(r, i);
		if (first == i ? place_pidfd(x, r->fds[i].fd, e)
			       : dup2(r->fds[first].fd, r->fds[i].fd) < 0)
			return -1;
	}
	return 0;
}

bool fd_pidfd_needs_threads(const struct image_description *x)
{
	return x->flags & PIDFD_THREAD;
}

int fd_pidfd_open_remotely(struct remote *remote, uint64_t scratch, const struct image *job,
	const struct image_description *x, int64_t *opened, struct err *e)
{
	if (REMOTE_CALL(remote, opened, e, SYS_pidfd_open, x->args[0],
		    x->flags & (PIDFD_THREAD | O_NONBLOCK)))
		return -1;
	return *opened < 0 ? err_set(e, -*opened, "cannot create a pidfd of thread %d",
				     (int)x->args[0])
			   : 0;
}

void fd_pidfd_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	if (x->args[0])
		buf_printf(out, "pidfd of %s %d",
			x->flags & PIDFD_THREAD ? "thread" : "process", (int)x->args[0]);
	else
		buf_printf(out, "pidfd of a process that has ended");
}
