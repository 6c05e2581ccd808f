/*
 * What the kernel tells of System V objects it tells by system calls only, in the caller's IPC
 * namespace; and the program may be in another than the supervisor. So a process of the tree
 * asks.
 */
#include "supervisor/sysv.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "lib/util.h"
#include "supervisor/fd/object.h"
#include "supervisor/remote.h"

#ifndef MSG_COPY
#define MSG_COPY 040000
#endif

#define SCRATCH    (256u * 1024)
#define ANSWER     0u     /* offsets in it: what the kernel fills, */
#define OPERATIONS 65536u /* and what it is given */
#define SEM_MAX    32767  /* SEMVMX and SEMAEM (include/uapi/linux/sem.h) */

/* A process of the tree that asks. */
struct asker {
	struct remote remote;
	struct process *process;
	uint64_t scratch;
	bool undoes; /* the process's end does something to a semaphore */
};

static int asker_begin(struct asker *a, struct process *p, struct err *e)
{
	a->process = p;
	if (remote_begin(&a->remote, p, &p->threads[0], e))
		return -1;
	a->scratch = remote_scratch(&a->remote, SCRATCH, e);
	if (a->scratch)
		return 0;
	(void)remote_end(&a->remote, NULL); /* there is an error to tell already */
	return -1;
}

static int asker_end(struct asker *a, int failed, struct err *e)
{
	return remote_end(&a->remote, failed ? NULL : e) || failed ? -1 : 0;
}

static int answer(const struct asker *a, void *data, size_t size, struct err *e)
{
	return tracee_read(a->process->mem_fd, a->scratch + ANSWER, data, size, e);
}

#define ASK(a, result, e, nr, ...) REMOTE_CALL(&(a)->remote, (result), (e), (nr), __VA_ARGS__)

/* ---- the three kinds ---- */

/* What is common to all, and who used it last. */
struct status {
	struct ipc_perm perm;
	int id;
	uint64_t size; /* bytes, semaphores, bytes that it may hold */
	uint64_t attached, messages, bytes;
	time_t changed;
	pid_t users[2];
	bool unused;
	bool guessed; /* nothing says that it is the tree's but its user and age */
};

static void common(struct status *s, const struct ipc_perm *perm, int id, time_t changed)
{
	memset(s, 0, sizeof(*s));
	s->perm = *perm;
	s->id = id;
	s->changed = changed;
}

static int ask_segment(struct asker *a, int call, int which, struct status *s, struct err *e)
{
	struct shmid_ds d;
	int64_t id;

	if (ASK(a, &id, e, SYS_shmctl, which, call, a->scratch + ANSWER))
		return -1;
	if (id < 0)
		return -id;
	if (answer(a, &d, sizeof(d), e))
		return -1;
	common(s, &d.shm_perm, call == IPC_STAT ? which : id, d.shm_ctime);
	s->size = d.shm_segsz;
	s->attached = d.shm_nattch;
	s->users[0] = d.shm_cpid;
	s->users[1] = d.shm_lpid;
	return 0;
}

static int ask_queue(struct asker *a, int call, int which, struct status *s, struct err *e)
{
	struct msqid_ds d;
	int64_t id;

	if (ASK(a, &id, e, SYS_msgctl, which, call, a->scratch + ANSWER))
		return -1;
	if (id < 0)
		return -id;
	if (answer(a, &d, sizeof(d), e))
		return -1;
	common(s, &d.msg_perm, call == IPC_STAT ? which : id, d.msg_ctime);
	s->size = d.msg_qbytes;
	s->messages = d.msg_qnum;
	s->bytes = d.__msg_cbytes;
	s->unused = !d.msg_stime && !d.msg_rtime;
	s->users[0] = d.msg_lspid;
	s->users[1] = d.msg_lrpid;
	return 0;
}

static int ask_semaphores(struct asker *a, int call, int which, struct status *s, struct err *e)
{
	struct semid_ds d;
	int64_t id, pid;

	if (ASK(a, &id, e, SYS_semctl, which, 0, call, a->scratch + ANSWER))
		return -1;
	if (id < 0)
		return -id;
	if (answer(a, &d, sizeof(d), e))
		return -1;
	common(s, &d.sem_perm, call == IPC_STAT ? which : id, d.sem_ctime);
	s->size = d.sem_nsems;
	s->unused = !d.sem_otime;
	for (uint64_t i = 0; i < s->size; i++) {
		if (ASK(a, &pid, e, SYS_semctl, s->id, i, GETPID))
			return -1;
		if (pid > 0) {
			s->users[0] = pid;
			s->unused = false;
		}
	}
	return 0;
}

/* ---- whose are they? ---- */

static bool is_member(const struct tree *tree, pid_t vpid)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->processes[i]->vpid == vpid)
			return true;
	return false;
}

static bool is_alive(struct asker *a, pid_t vpid, struct err *e)
{
	int64_t r;

	return !ASK(a, &r, e, SYS_kill, vpid, 0) && r != -ESRCH;
}

/* When the first process of the tree started, by CLOCK_REALTIME; a second of slack, as the
 * kernel's times are whole ones. */
static time_t tree_start(const struct tree *tree)
{
	pid_t root = tree->processes[0]->pid;
	struct proc_stat st;

	if (procfs_stat(root, root, &st, NULL))
		return 0;
	return procfs_start_time(&st) - 2;
}

enum owner { OTHERS, TREE, PERHAPS_TREE };

/* One that a restart has made: nobody else is in it. */
static bool has_own_namespace(const struct tree *tree)
{
	cleanup_free char *path = xasprintf("/proc/%d/ns/ipc", tree->processes[0]->pid);
	cleanup_free char *its = read_link(path, NULL);
	cleanup_free char *ours = read_link("/proc/self/ns/ipc", NULL);

	return its && ours && strcmp(its, ours);
}

static bool is_of_user(const struct tree *tree, const struct status *s)
{
	pid_t root = tree->processes[0]->pid;
	cleanup_free char *status = procfs_status(root, root, NULL);

	return status && s->perm.cuid == status_number(status, "Uid", 10);
}

/* Whether system call @nr of kind @k names an object by its first argument, and may wait. */
static bool waits_at(enum image_object_kind k, long nr)
{
	switch (nr) {
	case SYS_semop:
	case SYS_semtimedop:
		return k == IMAGE_OBJECT_SEM;
	case SYS_msgrcv:
	case SYS_msgsnd:
		return k == IMAGE_OBJECT_MSG;
	default:
		return false;
	}
}

/* Who waits at an object has not used it yet, by what the kernel tells of it. */
static bool is_waited_for(const struct tree *tree, enum image_object_kind k, int id)
{
	for (size_t i = 0; i < tree->living; i++) {
		const struct process *p = tree->processes[i];

		for (size_t t = 0; t < p->thread_count; t++) {
			const struct user_regs_struct *regs = &p->threads[t].regs;

			if (x86_64_in_syscall(regs) &&
				waits_at(k, x86_64_syscall_number(regs)) &&
				(int)x86_64_syscall_arg(regs, 0) == id)
				return true;
		}
	}
	return false;
}

/* Users outside of the tree's pid namespace have no number in it. What nobody has used yet, nor
 * waits for, is anybody's, and stays where it is. */
static enum owner owner_of(struct asker *a, const struct tree *tree, enum image_object_kind k,
	const struct status *s)
{
	bool dead = false;

	if (has_own_namespace(tree))
		return TREE;
	/* It may be older than the tree. */
	if (is_waited_for(tree, k, s->id))
		return TREE;
	if (s->changed < tree_start(tree))
		return OTHERS;
	for (int i = 0; i < 2; i++)
		if (s->users[i] && is_member(tree, s->users[i]))
			return TREE;
	for (int i = 0; i < 2; i++) {
		if (s->users[i] && is_alive(a, s->users[i], NULL))
			return OTHERS;
		dead |= s->users[i];
	}
	return dead && !s->attached && is_of_user(tree, s) ? PERHAPS_TREE : OTHERS;
}

/* ---- adding one ---- */

static uint32_t find(const struct fd_dump *d, enum image_object_kind kind, int id)
{
	for (uint32_t n = 1; n <= buf_count(&d->objects, struct fd_object); n++)
		if (fd_object_at(d, n)->o.kind == kind &&
			fd_object_at(d, n)->o.inode == (uint64_t)id)
			return n;
	return 0;
}

static uint32_t add(struct fd_dump *d, enum image_object_kind kind, const char *what,
	const struct status *s)
{
	struct fd_object o = {
		.o =
			{
				.kind = kind,
				.dev = (uint32_t)s->perm.__key,
				.inode = s->id,
				.mode = s->perm.mode,
				.size = s->size,
				.flags = (s->guessed ? IMAGE_SYSV_GUESSED : 0) |
					 (s->unused ? IMAGE_SYSV_UNUSED : 0),
				.args[0] = s->perm.uid | (uint64_t)s->perm.gid << 32,
			},
		.fd = -1,
		.text = xasprintf("%s %d (key %#x%s)", what, s->id, (unsigned)s->perm.__key,
			s->guessed ? ", taken to be the program's" : ""),
		.link = xstrdup(""),
		.attached = s->attached,
	};

	o.o.name = image_writer_string(d->job, o.text);
	return fd_object_add(d, &o);
}

bool sysv_is_segment(const struct vma *v)
{
	return v->shared && !strncmp(v->name, "/SYSV", 5);
}

/* ---- shared memory ---- */

static unsigned huge_shift(const struct vma *v)
{
	return v->flags & VMA_HUGETLB ? __builtin_ctzll(v->page_size) : 0;
}

/* Of the segment attached at @at in process @p. */
static int find_huge_shift(
	const struct process *p, uint64_t at, struct image_object *o, struct err *e)
{
	struct vma_list list = {0};

	if (procfs_vmas(p->task, &list, e))
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (list.v[i].start == at)
			o->args[1] = huge_shift(&list.v[i]);
	vma_list_free(&list);
	return 0;
}

static int read_segment(
	const struct process *p, uint64_t at, struct fd_object *o, struct err *e)
{
	uint64_t size;

	if (find_huge_shift(p, at, &o->o, e))
		return -1;
	size = sysv_mapped_size(&o->o);
	return tracee_read(p->mem_fd, at, buf_grow(&o->bytes, size), size, e);
}

/* Through a mapping of our own, as none of the tree's has all of it. */
static int copy_segment(struct asker *a, struct fd_object *o, struct err *e)
{
	int64_t at, r;
	int failed;

	if (ASK(a, &at, e, SYS_shmat, o->o.inode, 0, SHM_RDONLY))
		return -1;
	if (at < 0 && at > -4096)
		return err_set(e, -at, "%s: cannot attach it", o->text);
	failed = read_segment(a->process, at, o, e);
	if (ASK(a, &r, failed ? NULL : e, SYS_shmdt, at))
		return -1;
	return failed;
}

int sysv_dump_mapping(struct fd_dump *d, struct process *p, const struct vma *v,
	bool *need_memory, struct err *e)
{
	uint32_t number = find(d, IMAGE_OBJECT_SHM, v->inode);
	struct status s;
	struct asker a;
	struct fd_object *o;
	int r;

	if (!number) {
		if (asker_begin(&a, p, e))
			return -1;
		r = ask_segment(&a, IPC_STAT, v->inode, &s, e);
		if (asker_end(&a, r < 0, e))
			return -1;
		if (r)
			return err_set(e, r,
				"process %d (%s): cannot ask for System V shared memory "
				"%" PRIu64,
				p->pid, p->comm, v->inode);
		number = add(d, IMAGE_OBJECT_SHM, "System V shared memory", &s);
	}
	o = fd_object_at(d, number);
	o->o.args[1] = huge_shift(v);
	o->seen++;
	*need_memory = !o->stored && !v->offset && v->end - v->start >= o->o.size;
	o->stored |= *need_memory;
	return number;
}

static int finish_segments(struct fd_dump *d, struct asker *a, struct err *e)
{
	for (uint32_t n = 1; n <= buf_count(&d->objects, struct fd_object); n++) {
		struct fd_object *o = fd_object_at(d, n);

		if (o->o.kind != IMAGE_OBJECT_SHM)
			continue;
		if (o->attached != o->seen)
			return err_set(e, 0,
				"%s: a process that is not being saved has attached it, too",
				o->text);
		if (!o->stored && !o->bytes.len && copy_segment(a, o, e))
			return -1;
	}
	return 0;
}

/* ---- semaphores ---- */

/* Try operations of which the last cannot succeed, so that none takes place. Whether one before
 * it left the range that the kernel allows (ERANGE). -1 on failure. */
static int leaves_range(
	struct asker *a, int id, const struct sembuf *ops, size_t count, struct err *e)
{
	uint64_t at = a->scratch + OPERATIONS;
	int64_t r;

	if (tracee_write(a->process->mem_fd, at, ops, count * sizeof(*ops), e) ||
		ASK(a, &r, e, SYS_semop, id, at, count))
		return -1;
	return r == -ERANGE;
}

/* Whether (semadj + @amount) is above the range, where the value is @now. */
static int above(struct asker *a, int id, unsigned short n, int now, int amount, struct err *e)
{
	struct sembuf ops[4] = {{n, -now, IPC_NOWAIT}, {n, amount, IPC_NOWAIT},
		{n, -amount, IPC_NOWAIT | SEM_UNDO}, {n, -1, IPC_NOWAIT}};

	return leaves_range(a, id, ops + !now, 4 - !now, e);
}

/* Whether (semadj - 1 - @amount) is below it. */
static int below(struct asker *a, int id, unsigned short n, int now, int amount, struct err *e)
{
	struct sembuf ops[5] = {{n, -now, IPC_NOWAIT}, {n, 1, IPC_NOWAIT | SEM_UNDO},
		{n, -1, IPC_NOWAIT}, {n, amount, IPC_NOWAIT | SEM_UNDO}, {n, 0, IPC_NOWAIT}};

	return leaves_range(a, id, ops + !now, 5 - !now, e);
}

/* What the end of the process would add to semaphore @n (SEM_UNDO): the kernel does not say,
 * but it says when an operation would make the sum too large or too small. */
static int ask_undo(
	struct asker *a, int id, unsigned short n, int now, int *undo, struct err *e)
{
	int (*const tests[2])(struct asker *, int, unsigned short, int, int, struct err *) = {
		above, below};

	*undo = 0;
	for (int i = 0; i < 2; i++) {
		int low = 1, high = SEM_MAX, r = tests[i](a, id, n, now, SEM_MAX, e);

		if (r < 0)
			return -1;
		if (!r)
			continue;
		/* The least amount that leaves the range. */
		while (low < high) {
			int mid = (low + high) / 2;

			r = tests[i](a, id, n, now, mid, e);
			if (r < 0)
				return -1;
			if (r)
				high = mid;
			else
				low = mid + 1;
		}
		*undo = i ? low - SEM_MAX - 1 : SEM_MAX + 1 - low;
		return 0;
	}
	return 0;
}

static int add_undo(struct asker *a, struct fd_object *o, struct err *e)
{
	size_t count = o->o.args[1];

	for (size_t n = 0; n < count; n++) {
		struct image_sem_undo undo = {a->process->vpid, n, 0};
		int value = ((unsigned short *)o->bytes.data)[n], found;

		if (ask_undo(a, o->o.inode, n, value, &found, e))
			return -1;
		undo.undo = found;
		a->undoes |= found;
		if (found)
			buf_push(&o->bytes, struct image_sem_undo, &undo);
	}
	o->o.size = o->bytes.len;
	return 0;
}

/* With CLONE_SYSVSEM what is to be undone is so at the end of the last of them. That they have
 * nothing to be undone in common tells kcmp(2) of all who have nothing at all. */
static int refuse_common_undo(const struct tree *tree, const struct process *p, struct err *e)
{
	for (size_t i = 0; i < tree->living; i++) {
		const struct process *other = tree->processes[i];

		if (other != p &&
			!syscall(SYS_kcmp, other->task, p->task, KCMP_SYSVSEM, 0L, 0L))
			return err_set(e, 0,
				"processes %d and %d (%s) share what their ends do to "
				"semaphores (CLONE_SYSVSEM), which is not supported",
				other->pid, p->pid, p->comm);
	}
	return 0;
}

/* Each process has its own. */
static int dump_undo(struct fd_dump *d, struct process *p, struct err *e)
{
	struct asker a = {0};
	int failed = 0;

	for (uint32_t n = 1; n <= buf_count(&d->objects, struct fd_object) && !failed; n++) {
		if (fd_object_at(d, n)->o.kind != IMAGE_OBJECT_SEM)
			continue;
		if (!a.process && asker_begin(&a, p, e))
			return -1;
		failed = add_undo(&a, fd_object_at(d, n), e);
	}
	if (a.process && asker_end(&a, failed, e))
		return -1;
	return a.undoes ? refuse_common_undo(d->tree, p, e) : 0;
}

static int add_semaphores(
	struct fd_dump *d, struct asker *a, const struct status *s, struct err *e)
{
	struct fd_object *o =
		fd_object_at(d, add(d, IMAGE_OBJECT_SEM, "System V semaphores", s));
	size_t size = s->size * sizeof(unsigned short);
	int64_t r;

	if (size > OPERATIONS)
		return err_set(e, 0, "%s: too many semaphores in one set", o->text);
	if (ASK(a, &r, e, SYS_semctl, s->id, 0, GETALL, a->scratch + ANSWER))
		return -1;
	if (r < 0)
		return err_set(e, -r, "%s: cannot read their values", o->text);
	o->o.args[1] = s->size;
	o->o.size = size;
	return answer(a, buf_grow(&o->bytes, size), size, e);
}

/* ---- message queues ---- */

static int copy_message(struct asker *a, struct fd_object *o, uint64_t index, struct err *e)
{
	struct image_queue_message m = {0};
	int64_t n;

	/* CONFIG_CHECKPOINT_RESTORE: a copy of the message, which stays. */
	if (ASK(a, &n, e, SYS_msgrcv, o->o.inode, a->scratch + ANSWER, SCRATCH - 8, index,
		    MSG_COPY | IPC_NOWAIT | MSG_NOERROR))
		return -1;
	if (n < 0)
		return err_set(e, -n, "%s: cannot copy message %" PRIu64, o->text, index);
	if (n > SCRATCH - 16)
		return err_set(e, 0, "%s: message %" PRIu64 " is too long", o->text, index);
	if (answer(a, &m.type, sizeof(m.type), e))
		return -1;
	m.size = n;
	buf_push(&o->bytes, struct image_queue_message, &m);
	return tracee_read(a->process->mem_fd, a->scratch + ANSWER + sizeof(m.type),
		buf_grow(&o->bytes, n), n, e);
}

static int add_queue(struct fd_dump *d, struct asker *a, const struct status *s, struct err *e)
{
	struct fd_object *o =
		fd_object_at(d, add(d, IMAGE_OBJECT_MSG, "System V message queue", s));

	o->o.args[1] = s->size;
	for (uint64_t i = 0; i < s->messages; i++)
		if (copy_message(a, o, i, e))
			return -1;
	o->o.size = o->bytes.len;
	return 0;
}

static int add_segment(
	struct fd_dump *d, struct asker *a, const struct status *s, struct err *e)
{
	uint32_t number = add(d, IMAGE_OBJECT_SHM, "System V shared memory", s);

	return copy_segment(a, fd_object_at(d, number), e);
}

/* ---- all of them ---- */

static const struct kind {
	enum image_object_kind kind;
	long info; /* the call that, with IPC_INFO, returns the highest index in use */
	int stat;  /* asks by index */
	int (*ask)(struct asker *a, int call, int which, struct status *s, struct err *e);
	int (*add)(struct fd_dump *d, struct asker *a, const struct status *s, struct err *e);
} kinds[] = {
	{IMAGE_OBJECT_SHM, SYS_shmctl, SHM_STAT, ask_segment, add_segment},
	{IMAGE_OBJECT_SEM, SYS_semctl, SEM_STAT, ask_semaphores, add_semaphores},
	{IMAGE_OBJECT_MSG, SYS_msgctl, MSG_STAT, ask_queue, add_queue},
};

static int highest_index(struct asker *a, const struct kind *k, int64_t *highest, struct err *e)
{
	/* semctl(2) has one argument more. */
	if (k->info == SYS_semctl)
		return ASK(a, highest, e, SYS_semctl, 0, 0, SEM_INFO, a->scratch + ANSWER);
	return ASK(a, highest, e, k->info, 0, k->info == SYS_shmctl ? SHM_INFO : MSG_INFO,
		a->scratch + ANSWER);
}

static int dump_kind(struct fd_dump *d, struct asker *a, const struct kind *k,
	const struct tree *tree, struct err *e)
{
	int64_t highest;

	/* Negative: this kernel has none. With none in use it is 0. */
	if (highest_index(a, k, &highest, e))
		return -1;
	for (int64_t i = 0; i <= highest; i++) {
		struct status s;
		enum owner owner;
		int r = k->ask(a, k->stat, i, &s, e);

		if (r < 0)
			return -1;
		/* Not there, or one that this user may not look at. */
		owner = r || find(d, k->kind, s.id) ? OTHERS : owner_of(a, tree, k->kind, &s);
		if (owner == OTHERS)
			continue;
		s.guessed = owner == PERHAPS_TREE;
		if (!k->add(d, a, &s, s.guessed ? NULL : e))
			continue;
		if (!s.guessed)
			return -1;
		fd_object_drop(d); /* whoever has it has removed it meanwhile */
	}
	return 0;
}

int sysv_dump_rest(struct fd_dump *d, const struct tree *tree, struct err *e)
{
	struct asker a;
	int failed = 0;

	if (asker_begin(&a, tree->processes[0], e))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !failed; i++)
		failed = dump_kind(d, &a, &kinds[i], tree, e);
	if (!failed)
		failed = finish_segments(d, &a, e);
	if (asker_end(&a, failed, e))
		return -1;
	for (size_t i = 0; i < tree->living; i++)
		if (dump_undo(d, tree->processes[i], e))
			return -1;
	return 0;
}
