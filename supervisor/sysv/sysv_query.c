/*
 * sysv_query.c - system calls made here or in a process of the tree, and what they say of an
 * object.
 */
#include "supervisor/sysv/sysv_query.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"

void sysv_asker_here(struct sysv_asker *a)
{
	memset(a, 0, sizeof(*a));
	a->own = xmalloc(SYSV_SCRATCH);
	a->scratch = (uintptr_t)a->own;
}

int sysv_asker_begin(struct sysv_asker *a, struct process *p, struct err *e)
{
	memset(a, 0, sizeof(*a));
	a->process = p;
	if (remote_begin(&a->remote, p, &p->threads[0], e))
		return -1;
	a->scratch = remote_scratch(&a->remote, SYSV_SCRATCH, e);
	if (a->scratch)
		return 0;
	(void)remote_end(&a->remote, NULL); /* there is an error to tell already */
	return -1;
}

int sysv_asker_end(struct sysv_asker *a, int failed, struct err *e)
{
	free(a->own);
	if (!a->process)
		return failed ? -1 : 0;
	return remote_end(&a->remote, failed ? NULL : e) || failed ? -1 : 0;
}

int sysv_ask(
	struct sysv_asker *a, long nr, const uint64_t args[6], int64_t *result, struct err *e)
{
	long r;

	if (a->process)
		return remote_call(&a->remote, nr, args, result, e);
	r = syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
	*result = r < 0 ? -errno : r;
	return 0;
}

int sysv_answer(const struct sysv_asker *a, void *data, size_t size, struct err *e)
{
	return sysv_read(a, a->scratch + SYSV_ANSWER, data, size, e);
}

int sysv_read(
	const struct sysv_asker *a, uint64_t address, void *data, size_t size, struct err *e)
{
	if (a->process)
		return tracee_read(a->process->mem_fd, address, data, size, e);
	memcpy(data, (void *)(uintptr_t)address, size);
	return 0;
}

void sysv_status_begin(
	struct sysv_status *s, const struct ipc_perm *perm, int id, time_t changed)
{
	memset(s, 0, sizeof(*s));
	s->perm = *perm;
	s->id = id;
	s->changed = changed;
}

time_t sysv_later(time_t a, time_t b)
{
	return a > b ? a : b;
}

void sysv_status_add_user(struct sysv_status *s, pid_t pid)
{
	for (size_t i = 0; i < buf_count(&s->users, pid_t); i++)
		if (*buf_at(&s->users, pid_t, i) == pid)
			return;
	if (pid > 0)
		buf_push(&s->users, pid_t, &pid);
}

void sysv_status_free(struct sysv_status *s)
{
	buf_free(&s->users);
}
