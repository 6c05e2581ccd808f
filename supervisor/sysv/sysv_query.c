/*
 * sysv_query.c - segments, queues and sets of semaphores, asked here or in a process of the
 * tree.
 */
#include "supervisor/sysv/sysv_query.h"

#include <errno.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
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

static void fill_common(
	struct sysv_status *s, const struct ipc_perm *perm, int id, time_t changed)
{
	memset(s, 0, sizeof(*s));
	s->perm = *perm;
	s->id = id;
	s->changed = changed;
}

static time_t later(time_t a, time_t b)
{
	return a > b ? a : b;
}

static void add_user(struct sysv_status *s, pid_t pid)
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

int sysv_ask_segment(
	struct sysv_asker *a, int call, int which, struct sysv_status *s, struct err *e)
{
	struct shmid_ds d;
	int64_t id;

	if (SYSV_ASK(a, &id, e, SYS_shmctl, which, call, a->scratch + SYSV_ANSWER))
		return -1;
	if (id < 0)
		return -id;
	if (sysv_answer(a, &d, sizeof(d), e))
		return -1;
	fill_common(s, &d.shm_perm, call == IPC_STAT ? which : id, d.shm_ctime);
	s->size = d.shm_segsz;
	s->attached = d.shm_nattch;
	s->used = later(d.shm_ctime, later(d.shm_atime, d.shm_dtime));
	add_user(s, d.shm_cpid);
	add_user(s, d.shm_lpid);
	return 0;
}

int sysv_ask_queue(
	struct sysv_asker *a, int call, int which, struct sysv_status *s, struct err *e)
{
	struct msqid_ds d;
	int64_t id;

	if (SYSV_ASK(a, &id, e, SYS_msgctl, which, call, a->scratch + SYSV_ANSWER))
		return -1;
	if (id < 0)
		return -id;
	if (sysv_answer(a, &d, sizeof(d), e))
		return -1;
	fill_common(s, &d.msg_perm, call == IPC_STAT ? which : id, d.msg_ctime);
	s->size = d.msg_qbytes;
	s->messages = d.msg_qnum;
	s->bytes = d.__msg_cbytes;
	s->unused = !d.msg_stime && !d.msg_rtime;
	s->used = later(d.msg_stime, d.msg_rtime);
	add_user(s, d.msg_lspid);
	add_user(s, d.msg_lrpid);
	return 0;
}

int sysv_ask_semaphores(
	struct sysv_asker *a, int call, int which, struct sysv_status *s, struct err *e)
{
	struct semid_ds d;
	int64_t id, pid;

	if (SYSV_ASK(a, &id, e, SYS_semctl, which, 0, call, a->scratch + SYSV_ANSWER))
		return -1;
	if (id < 0)
		return -id;
	if (sysv_answer(a, &d, sizeof(d), e))
		return -1;
	fill_common(s, &d.sem_perm, call == IPC_STAT ? which : id, d.sem_ctime);
	s->size = d.sem_nsems;
	s->unused = !d.sem_otime;
	s->used = later(d.sem_otime, d.sem_ctime);
	for (uint64_t i = 0; i < s->size; i++) {
		if (SYSV_ASK(a, &pid, e, SYS_semctl, s->id, i, GETPID)) {
			sysv_status_free(s);
			return -1;
		}
		add_user(s, pid);
		s->unused &= pid <= 0;
	}
	return 0;
}
