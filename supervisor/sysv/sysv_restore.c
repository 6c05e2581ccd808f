/*
 * An id can be chosen by processes that may checkpoint (CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN
 * over the IPC namespace) through /proc/sys/kernel/{shm,sem,msg}_next_id. Everybody else, and
 * whose ids are in use, needs a new IPC namespace. What is there still, as nothing ends with
 * its users, is taken over.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "lib/limits.h"
#include "lib/procfs.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/sysv/sysv.h"
#include "supervisor/sysv/sysv_owner.h"

#ifndef SHM_HUGE_SHIFT /* <linux/shm.h>, which the C library's cannot stand beside */
#define SHM_HUGE_SHIFT 26
#endif

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
};

/* LEFT_ALONE: nobody has used it, then as now. */
enum presence { ABSENT, LEFTOVER, TAKEN, LEFT_ALONE };

static const struct kind {
	uint32_t kind;
	const char *what, *next_id;
	long get, set; /* system calls */
} kinds[] = {
	{IMAGE_OBJECT_SHM, "System V shared memory", "/proc/sys/kernel/shm_next_id", SYS_shmget,
		SYS_shmctl},
	{IMAGE_OBJECT_SEM, "System V semaphores", "/proc/sys/kernel/sem_next_id", SYS_semget,
		SYS_semctl},
	{IMAGE_OBJECT_MSG, "System V message queue", "/proc/sys/kernel/msg_next_id", SYS_msgget,
		SYS_msgctl},
};

/* What an older trecr took to be the program's by a guess is left to its owner. */
static const struct kind *kind_of(const struct image_object *o)
{
	if (o->flags & IMAGE_SYSV_GUESSED)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].kind == o->kind)
			return &kinds[i];
	return NULL;
}

static const struct image_object *objects_of(const struct image *job, size_t *count)
{
	return image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, count);
}

/* ---- what is there already ---- */

static time_t later(time_t a, time_t b)
{
	return a > b ? a : b;
}

/* How an object is used that was found under an id of the image. */
struct use {
	bool by_now; /* by processes that are alive */
	bool ever;
};

static enum presence presence(const struct image_object *o, const struct ipc_perm *perm,
	uint64_t size, struct use used)
{
	bool same = perm->__key == (key_t)o->dev && size == o->size;

	if (!same || used.by_now)
		return TAKEN;
	/* Waiters at a queue are not told of. */
	return o->flags & IMAGE_SYSV_UNUSED && !used.ever ? LEFT_ALONE : LEFTOVER;
}

static enum presence look_at_segment(const struct image_object *o, const struct shmid_ds *d)
{
	struct use used = {.ever = true};

	used.by_now = d->shm_nattch || sysv_is_alive(d->shm_cpid, d->shm_ctime) ||
		      sysv_is_alive(d->shm_lpid, later(d->shm_atime, d->shm_dtime));
	return presence(o, &d->shm_perm, d->shm_segsz, used);
}

/* Of a set that has no such number of semaphores EINVAL says nothing new. */
static enum presence look_at_semaphores(const struct image_object *o, const struct semid_ds *d)
{
	time_t when = later(d->sem_otime, d->sem_ctime);
	struct use used = {.ever = d->sem_otime};
	int id = o->inode;

	for (size_t i = 0; i < d->sem_nsems; i++) {
		int pid = semctl(id, i, GETPID);

		used.ever |= pid > 0;
		used.by_now |= sysv_is_alive(pid, when) || semctl(id, i, GETNCNT) > 0 ||
			       semctl(id, i, GETZCNT) > 0;
	}
	return presence(o, &d->sem_perm, d->sem_nsems == o->args[1] ? o->size : 0, used);
}

static enum presence look_at_queue(const struct image_object *o, const struct msqid_ds *d)
{
	struct use used = {.ever = d->msg_stime || d->msg_rtime};

	used.by_now = sysv_is_alive(d->msg_lspid, d->msg_stime) ||
		      sysv_is_alive(d->msg_lrpid, d->msg_rtime);
	return presence(o, &d->msg_perm, o->size, used);
}

static enum presence look_for_object(const struct image_object *o)
{
	struct shmid_ds shm;
	struct semid_ds sem;
	struct msqid_ds msg;
	int id = o->inode;

	switch (o->kind) {
	case IMAGE_OBJECT_SHM:
		if (!shmctl(id, IPC_STAT, &shm))
			return look_at_segment(o, &shm);
		break;
	case IMAGE_OBJECT_SEM:
		if (!semctl(id, 0, IPC_STAT, (union semun){.buf = &sem}))
			return look_at_semaphores(o, &sem);
		break;
	default:
		if (!msgctl(id, IPC_STAT, &msg))
			return look_at_queue(o, &msg);
	}
	return errno == EINVAL || errno == EIDRM ? ABSENT : TAKEN;
}

static int find_key(const struct image_object *o)
{
	switch (o->kind) {
	case IMAGE_OBJECT_SHM:
		return shmget(o->dev, 0, 0);
	case IMAGE_OBJECT_SEM:
		return semget(o->dev, 0, 0);
	default:
		return msgget(o->dev, 0);
	}
}

/* Whether another object has its key; EACCES: an object that we may not use. */
static bool key_is_taken(const struct image_object *o)
{
	int id;

	if (!(key_t)o->dev)
		return false;
	id = find_key(o);
	return id >= 0 ? id != (int)o->inode : errno == EACCES;
}

bool sysv_has_objects(const struct checkpoint *c)
{
	const struct image_object *o;
	size_t count;

	o = objects_of(c->job, &count);
	for (size_t i = 0; i < count; i++)
		if (kind_of(&o[i]))
			return true;
	return false;
}

char *sysv_obstacle(const struct checkpoint *c)
{
	const struct image_object *o;
	size_t count;

	o = objects_of(c->job, &count);
	for (size_t i = 0; i < count; i++) {
		const struct kind *k = kind_of(&o[i]);
		enum presence p = k ? look_for_object(&o[i]) : LEFTOVER;

		if (p == TAKEN || (k && key_is_taken(&o[i])))
			return xasprintf("%s %d is in use", k->what, (int)o[i].inode);
		if (p == ABSENT) {
			cleanup_fd int fd = open(k->next_id, O_WRONLY | O_CLOEXEC);

			if (fd < 0)
				return xstrdup(
					"choosing System V ids requires a capability here");
		}
	}
	return NULL;
}

void sysv_list(const struct checkpoint *c, bool left_over, struct buf *list)
{
	const struct image_object *o;
	size_t count;

	o = objects_of(c->job, &count);
	for (size_t i = 0; i < count; i++)
		if (kind_of(&o[i]) && look_for_object(&o[i]) == (left_over ? LEFTOVER : ABSENT))
			buf_push(list, struct image_object, &o[i]);
}

/* What is not there any more, or not yet, needs no removing. */
static void remove_object(uint32_t kind, int id)
{
	if (kind == IMAGE_OBJECT_SHM)
		(void)shmctl(id, IPC_RMID, NULL);
	else if (kind == IMAGE_OBJECT_SEM)
		(void)semctl(id, 0, IPC_RMID);
	else
		(void)msgctl(id, IPC_RMID, NULL);
}

void sysv_remove(const struct buf *list)
{
	for (size_t i = 0; i < buf_count(list, struct image_object); i++) {
		const struct image_object *o = buf_at(list, struct image_object, i);

		remove_object(o->kind, o->inode);
	}
}

/* ---- making them ---- */

/* Without the name of the directory in it: the error names the object. */
static int choose_id(const struct kind *k, uint64_t id, struct err *e)
{
	cleanup_fd int fd = open(k->next_id, O_WRONLY | O_CLOEXEC);
	cleanup_free char *text = xasprintf("%" PRIu64, id);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return err_set(e, errno, "cannot choose an id (%s)", k->next_id);
	return 0;
}

static int get_object(const struct image_object *o, int flags)
{
	switch (o->kind) {
	case IMAGE_OBJECT_SHM:
		if (flags & IPC_CREAT && o->args[1])
			flags |= SHM_HUGETLB | (int)(o->args[1] << SHM_HUGE_SHIFT);
		return shmget(o->dev, o->size, flags);
	case IMAGE_OBJECT_SEM:
		return semget(o->dev, o->args[1], flags);
	default:
		return msgget(o->dev, flags);
	}
}

/* Its id is to be free, or the id of the object that we know. */
static int make_object(const struct kind *k, const struct image_object *o, struct err *e)
{
	int id;

	if (choose_id(k, o->inode, e))
		return -1;
	id = get_object(o, IPC_CREAT | IPC_EXCL | 0600);
	if (id < 0 && o->kind == IMAGE_OBJECT_SHM && o->args[1])
		return err_set(e, errno,
			"cannot create it in huge pages (are enough reserved? see "
			"vm.nr_hugepages)");
	if (id < 0 && errno == EEXIST)
		return err_with(e, ERR_ID_TAKEN, "its key is in use");
	if (id < 0)
		return limit_err(e, errno, k->get, "cannot create it again");
	if (id == (int)o->inode)
		return 0;
	remove_object(o->kind, id);
	return err_with(e, ERR_ID_TAKEN, "its id is in use");
}

static int set_segment(int id, void *d)
{
	return shmctl(id, IPC_SET, d);
}

static int set_semaphores(int id, void *d)
{
	return semctl(id, 0, IPC_SET, (union semun){.buf = d});
}

static int set_messages(int id, void *d)
{
	return msgctl(id, IPC_SET, d);
}

/* By @set, with @perm in @d; @as_was: all else in there is as it was. EINVAL: this user
 * namespace has no such user. In there nobody else can use an object that has been made, so
 * that nobody is kept out or let in if it stays ours. An object that is still there is
 * another user's already. */
static int set_perm(const struct image_object *o, struct ipc_perm *perm, bool as_was,
	int (*set)(int id, void *d), void *d)
{
	uid_t uid = perm->uid;
	gid_t gid = perm->gid;

	as_was = as_was && (perm->mode & 0777) == (o->mode & 0777);
	perm->uid = o->args[0];
	perm->gid = o->args[0] >> 32;
	perm->mode = o->mode & 0777;
	if (!set(o->inode, d))
		return 0;
	if (errno != EINVAL)
		return -1;
	perm->uid = uid;
	perm->gid = gid;
	if (!set(o->inode, d))
		return 0;
	return errno == EINVAL && as_was ? 0 : -1;
}

static int fill_segment(
	struct fd_restore *r, uint32_t number, const struct image_object *o, struct err *e)
{
	struct shmid_ds d;
	int id = o->inode, failed;
	void *p = shmat(id, NULL, 0);

	if (p == (void *)-1)
		return err_set(e, errno, "cannot attach it");
	memset(p, 0, sysv_mapped_size(o));
	failed = fd_contents(r->job, number, sysv_mapped_size(o), p, e);
	if (shmdt(p) || failed)
		return -1;
	if (shmctl(id, IPC_STAT, &d))
		return err_set(e, errno, "cannot look at it");
	if (set_perm(o, &d.shm_perm, true, set_segment, &d) ||
		(o->mode & SHM_LOCKED && shmctl(id, SHM_LOCK, NULL)))
		return err_set(e, errno, "cannot set its owner and mode");
	return 0;
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
		return err_set(e, errno, "cannot look at them");
	return set_perm(o, &d.sem_perm, true, set_semaphores, &d)
		       ? err_set(e, errno, "cannot set their owner and mode")
		       : 0;
}

static int send_messages(int id, const char *data, size_t size, struct err *e)
{
	struct image_queue_message m;

	for (size_t at = 0; at < size; at += sizeof(m) + m.size) {
		cleanup_free struct msgbuf *message = NULL;

		if (size - at < sizeof(m))
			return err_set(e, 0, "the image is damaged");
		memcpy(&m, data + at, sizeof(m));
		if (m.size > size - at - sizeof(m))
			return err_set(e, 0, "the image is damaged");
		message = xmalloc(sizeof(*message) + m.size);
		message->mtype = m.type;
		memcpy(message->mtext, data + at + sizeof(m), m.size);
		if (msgsnd(id, message, m.size, IPC_NOWAIT))
			return err_set(e, errno, "cannot send a message");
	}
	return 0;
}

static int set_queue(const struct image_object *o, uint64_t bytes, struct err *e)
{
	struct msqid_ds d;
	bool as_was;

	if (msgctl(o->inode, IPC_STAT, &d))
		return err_set(e, errno, "cannot look at it");
	as_was = d.msg_qbytes == bytes;
	d.msg_qbytes = bytes;
	if (set_perm(o, &d.msg_perm, as_was, set_messages, &d))
		return limit_err(e, errno, SYS_msgctl, "cannot set its owner, mode and size");
	return 0;
}

/* Whose a queue is, the next checkpoint sees by who has used it last (sysv_owner.h). */
static int use_queue(int id, struct err *e)
{
	struct msgbuf message = {.mtype = 1};

	return msgsnd(id, &message, 0, IPC_NOWAIT) || msgrcv(id, &message, 0, 0, IPC_NOWAIT) < 0
		       ? err_set(e, errno, "cannot send a message")
		       : 0;
}

static int fill_queue(
	struct fd_restore *r, uint32_t number, const struct image_object *o, struct err *e)
{
	cleanup_buf struct buf messages = {0};
	char *data = buf_grow(&messages, o->size);
	struct {
		long type;
		char byte;
	} old;

	while (msgrcv(o->inode, &old, 1, 0, IPC_NOWAIT | MSG_NOERROR) >= 0)
		;
	if (errno != ENOMSG)
		return err_set(e, errno, "cannot empty it");
	if (!o->size && !(o->flags & IMAGE_SYSV_UNUSED) && use_queue(o->inode, e))
		return -1;
	if (fd_contents(r->job, number, o->size, data, e))
		return -1;
	/* It may hold more than it would take now. */
	if (o->args[1] < o->size && send_messages(o->inode, data, o->size, e))
		return -1;
	if (set_queue(o, o->args[1], e))
		return -1;
	return o->args[1] >= o->size ? send_messages(o->inode, data, o->size, e) : 0;
}

/* An object that is still there may have a mode that keeps even its owner out. @perm is in @d, which
 * @status is the result of asking for. */
static int let_in(
	int id, int status, struct ipc_perm *perm, int (*set)(int id, void *d), void *d)
{
	if (status || (perm->mode & 0600) == 0600)
		return status;
	perm->mode |= 0600;
	return set(id, d);
}

static int let_us_in(const struct image_object *o, struct err *e)
{
	struct shmid_ds shm;
	struct semid_ds sem;
	struct msqid_ds msg;
	int id = o->inode, failed;

	switch (o->kind) {
	case IMAGE_OBJECT_SHM:
		failed = let_in(
			id, shmctl(id, IPC_STAT, &shm), &shm.shm_perm, set_segment, &shm);
		break;
	case IMAGE_OBJECT_SEM:
		failed = semctl(id, 0, IPC_STAT, (union semun){.buf = &sem});
		failed = let_in(id, failed, &sem.sem_perm, set_semaphores, &sem);
		break;
	default:
		failed = let_in(
			id, msgctl(id, IPC_STAT, &msg), &msg.msg_perm, set_messages, &msg);
	}
	return failed ? limit_err(e, errno, kind_of(o)->set, "cannot set its mode") : 0;
}

static int restore_one(
	struct fd_restore *r, const struct kind *k, uint32_t number, struct err *e)
{
	const struct image_object *o = &r->objects[number - 1];

	if (o->size > 1ull << 40 || o->args[1] > 1ull << 40 ||
		(o->kind == IMAGE_OBJECT_SHM && o->args[1] > 40))
		return err_set(e, 0, "the image is damaged");
	if (look_for_object(o) == LEFT_ALONE)
		return 0;
	if (look_for_object(o) == ABSENT ? make_object(k, o, e) : let_us_in(o, e))
		return -1;
	if (r->options->alive && o->kind != IMAGE_OBJECT_SEM)
		return 0;
	switch (o->kind) {
	case IMAGE_OBJECT_SHM:
		return fill_segment(r, number, o, e);
	case IMAGE_OBJECT_SEM:
		return fill_semaphores(r, number, o, e);
	default:
		return fill_queue(r, number, o, e);
	}
}

int sysv_restore(struct fd_restore *r, struct err *e)
{
	for (uint32_t n = 1; n <= r->object_count; n++) {
		const struct kind *k = kind_of(&r->objects[n - 1]);

		if (k && restore_one(r, k, n, e))
			return err_prefix(e, "%s %d", k->what, (int)r->objects[n - 1].inode);
	}
	return 0;
}
