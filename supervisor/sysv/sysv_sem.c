/*
 * sysv_sem.c - sets of System V semaphores. What the ends of processes do to them (SEM_UNDO) is
 * in semaphore_undo.h.
 */
#include <errno.h>
#include <sys/sem.h>
#include <sys/syscall.h>

#include "lib/util.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/sysv/sysv_kinds.h"
#include "supervisor/sysv/sysv_owner.h"

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
};

/* ---- checkpoint ---- */

/* semctl(2) has one argument more than the calls of the other kinds. */
static int highest_set(struct sysv_asker *a, int64_t *highest, struct err *e)
{
	return SYSV_ASK(a, highest, e, SYS_semctl, 0, 0, SEM_INFO, a->scratch + SYSV_ANSWER);
}

static int ask_semaphores(
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
	sysv_status_begin(s, &d.sem_perm, call == IPC_STAT ? which : id, d.sem_ctime);
	s->size = d.sem_nsems;
	s->unused = !d.sem_otime;
	s->used = sysv_later(d.sem_otime, d.sem_ctime);
	for (uint64_t i = 0; i < s->size; i++) {
		if (SYSV_ASK(a, &pid, e, SYS_semctl, s->id, i, GETPID)) {
			sysv_status_free(s);
			return -1;
		}
		sysv_status_add_user(s, pid);
		s->unused &= pid <= 0;
	}
	return 0;
}

static bool waits_at_semaphores(long nr)
{
	return nr == SYS_semop || nr == SYS_semtimedop;
}

static int copy_semaphores(
	struct sysv_asker *a, struct fd_object *o, const struct sysv_status *s, struct err *e)
{
	size_t size = s->size * sizeof(unsigned short);
	int64_t r;

	if (size > SYSV_OPERATIONS)
		return err_set(e, 0, "%s: too many semaphores in one set", o->text);
	if (SYSV_ASK(a, &r, e, SYS_semctl, s->id, 0, GETALL, a->scratch + SYSV_ANSWER))
		return -1;
	if (r < 0)
		return err_set(e, -r, "%s: cannot read their values%s", o->text,
			r == -EACCES ? SYSV_MODE_HINT : "");
	o->o.args[1] = s->size;
	o->o.size = size;
	return sysv_answer(a, buf_grow(&o->bytes, size), size, e);
}

/* ---- restart ---- */

/* Of a set that has no such number of semaphores EINVAL says nothing new. */
static int look_at_semaphores(const struct image_object *o, struct sysv_found *found)
{
	struct semid_ds d;
	int id = o->inode;
	time_t when;

	if (semctl(id, 0, IPC_STAT, (union semun){.buf = &d}))
		return -1;
	when = sysv_later(d.sem_otime, d.sem_ctime);
	*found = (struct sysv_found){
		.key = d.sem_perm.__key,
		.size = d.sem_nsems == o->args[1] ? o->size : 0,
		.ever_used = d.sem_otime,
	};
	for (size_t i = 0; i < d.sem_nsems; i++) {
		int pid = semctl(id, i, GETPID);

		found->ever_used |= pid > 0;
		found->used_by_now |= sysv_is_alive(pid, when) || semctl(id, i, GETNCNT) > 0 ||
				      semctl(id, i, GETZCNT) > 0;
	}
	return 0;
}

static int find_semaphores(key_t key)
{
	return semget(key, 0, 0);
}

static int make_semaphores(const struct image_object *o)
{
	return semget(o->dev, o->args[1], SYSV_NEW);
}

static void remove_semaphores(int id)
{
	(void)semctl(id, 0, IPC_RMID);
}

static int set_semaphores(int id, void *d)
{
	return semctl(id, 0, IPC_SET, (union semun){.buf = d});
}

static int let_into_semaphores(int id)
{
	struct semid_ds d;
	int failed = semctl(id, 0, IPC_STAT, (union semun){.buf = &d});

	return sysv_let_in(id, failed, &d.sem_perm, set_semaphores, &d);
}

static int fill_semaphores(
	struct fd_restore *r, uint32_t number, const struct image_object *o, struct err *e)
{
	cleanup_buf struct buf values = {0};
	struct semid_ds d;
	union semun u;

	if (o->size < o->args[1] * sizeof(*u.array))
		return err_set(e, 0, "the image is damaged");
	u.array = buf_grow(&values, o->size);
	if (fd_contents(r->job, number, o->size, u.array, e))
		return -1;
	if (semctl(o->inode, 0, SETALL, u))
		return err_set(e, errno, "cannot set their values");
	u.buf = &d;
	if (semctl(o->inode, 0, IPC_STAT, u))
		return err_set(e, errno, "cannot examine them");
	return sysv_set_perm(o, &d.sem_perm, true, set_semaphores, &d)
		       ? err_set(e, errno, "cannot set their owner and mode")
		       : 0;
}

const struct sysv_kind sysv_sem = {
	.kind = IMAGE_OBJECT_SEM,
	.what = "System V semaphores",
	.next_id = "/proc/sys/kernel/sem_next_id",
	.get = SYS_semget,
	.set = SYS_semctl,
	.stat = SEM_STAT,
	.stat_any = SEM_STAT_ANY,
	.has_undo = true,
	.highest = highest_set,
	.ask = ask_semaphores,
	.waits_at = waits_at_semaphores,
	.copy = copy_semaphores,
	.look = look_at_semaphores,
	.find = find_semaphores,
	.make = make_semaphores,
	.let_in = let_into_semaphores,
	.fill = fill_semaphores,
	.remove = remove_semaphores,
};
