/*
 * What the kernel tells of System V objects it tells by system calls only, in the caller's IPC
 * namespace; and the program may be in another than the supervisor. So a process of the tree
 * asks.
 */
#include "supervisor/sysv/sysv.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/notices.h"
#include "lib/util.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/sysv/semaphore_undo.h"
#include "supervisor/sysv/sysv_owner.h"
#include "supervisor/sysv/sysv_query.h"

/* ---- adding one ---- */

static uint32_t add_saved(struct fd_dump *d, enum image_object_kind kind, const char *what,
	const struct sysv_status *s)
{
	struct fd_object o = {
		.o =
			{
				.kind = kind,
				.dev = (uint32_t)s->perm.__key,
				.inode = s->id,
				.mode = s->perm.mode,
				.size = s->size,
				.flags = s->unused ? IMAGE_SYSV_UNUSED : 0,
				.args[0] = s->perm.uid | (uint64_t)s->perm.gid << 32,
			},
		.fd = -1,
		.text = xasprintf("%s %d (key %#x)", what, s->id, (unsigned)s->perm.__key),
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

/* Of the segment that @a has attached at @at. */
static int find_huge_shift(
	const struct sysv_asker *a, uint64_t at, struct image_object *o, struct err *e)
{
	struct vma_list list = {0};

	if (procfs_vmas(a->process ? a->process->task : getpid(), &list, e))
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (list.v[i].start == at)
			o->args[1] = huge_shift(&list.v[i]);
	vma_list_free(&list);
	return 0;
}

static int read_segment(
	const struct sysv_asker *a, uint64_t at, struct fd_object *o, struct err *e)
{
	uint64_t size;

	if (find_huge_shift(a, at, &o->o, e))
		return -1;
	size = sysv_mapped_size(&o->o);
	return sysv_read(a, at, buf_grow(&o->bytes, size), size, e);
}

/* Through another mapping, as none of the tree's has all of it. */
static int copy_segment(struct sysv_asker *a, struct fd_object *o, struct err *e)
{
	int64_t at, r;
	int failed;

	if (SYSV_ASK(a, &at, e, SYS_shmat, o->o.inode, 0, SHM_RDONLY))
		return -1;
	if (at < 0 && at > -4096)
		return err_set(e, -at, "%s: cannot attach it", o->text);
	failed = read_segment(a, at, o, e);
	if (SYSV_ASK(a, &r, failed ? NULL : e, SYS_shmdt, at))
		return -1;
	return failed;
}

int sysv_dump_mapping(struct fd_dump *d, struct process *p, const struct vma *v,
	bool *need_memory, struct err *e)
{
	uint32_t number = fd_object_numbered(d, IMAGE_OBJECT_SHM, v->inode);
	struct sysv_status s = {0};
	struct sysv_asker a;
	struct fd_object *o;
	int r;

	if (!number) {
		if (sysv_asker_begin(&a, p, e))
			return -1;
		r = sysv_ask_segment(&a, IPC_STAT, v->inode, &s, e);
		if (sysv_asker_end(&a, r < 0, e)) {
			sysv_status_free(&s);
			return -1;
		}
		if (r)
			return err_set(e, r,
				"process %d (%s): cannot query System V shared memory "
				"%" PRIu64,
				p->pid, p->comm, v->inode);
		number = add_saved(d, IMAGE_OBJECT_SHM, "System V shared memory", &s);
		sysv_status_free(&s);
	}
	o = fd_object_at(d, number);
	o->o.args[1] = huge_shift(v);
	o->seen++;
	*need_memory = !o->stored && !v->offset && v->end - v->start >= o->o.size;
	o->stored |= *need_memory;
	return number;
}

void sysv_leave_out(struct fd_dump *d, const struct vma *v)
{
	buf_push(&d->lowers, uint64_t, &v->inode);
}

static bool is_lowers(const struct fd_dump *d, int id)
{
	for (size_t i = 0; i < buf_count(&d->lowers, uint64_t); i++)
		if (*buf_at(&d->lowers, uint64_t, i) == (uint64_t)id)
			return true;
	return false;
}

/* ---- semaphores ---- */

static int add_semaphores(
	struct fd_dump *d, struct sysv_asker *a, const struct sysv_status *s, struct err *e)
{
	struct fd_object *o =
		fd_object_at(d, add_saved(d, IMAGE_OBJECT_SEM, "System V semaphores", s));
	size_t size = s->size * sizeof(unsigned short);
	int64_t r;

	if (size > SYSV_OPERATIONS)
		return err_set(e, 0, "%s: too many semaphores in one set", o->text);
	if (SYSV_ASK(a, &r, e, SYS_semctl, s->id, 0, GETALL, a->scratch + SYSV_ANSWER))
		return -1;
	if (r < 0)
		return err_set(e, -r, "%s: cannot read their values", o->text);
	o->o.args[1] = s->size;
	o->o.size = size;
	return sysv_answer(a, buf_grow(&o->bytes, size), size, e);
}

/* ---- message queues ---- */

static int copy_message(
	struct sysv_asker *a, struct fd_object *o, uint64_t index, struct err *e)
{
	struct image_queue_message m = {0};
	int64_t n;

	/* CONFIG_CHECKPOINT_RESTORE: a copy of the message, which stays. */
	if (SYSV_ASK(a, &n, e, SYS_msgrcv, o->o.inode, a->scratch + SYSV_ANSWER,
		    SYSV_SCRATCH - 8, index, MSG_COPY | IPC_NOWAIT | MSG_NOERROR))
		return -1;
	if (n < 0)
		return err_set(e, -n, "%s: cannot copy message %" PRIu64, o->text, index);
	if (n > SYSV_SCRATCH - 16)
		return err_set(e, 0, "%s: message %" PRIu64 " is too long", o->text, index);
	if (sysv_answer(a, &m.type, sizeof(m.type), e))
		return -1;
	m.size = n;
	buf_push(&o->bytes, struct image_queue_message, &m);
	return sysv_read(
		a, a->scratch + SYSV_ANSWER + sizeof(m.type), buf_grow(&o->bytes, n), n, e);
}

static int add_queue(
	struct fd_dump *d, struct sysv_asker *a, const struct sysv_status *s, struct err *e)
{
	struct fd_object *o =
		fd_object_at(d, add_saved(d, IMAGE_OBJECT_MSG, "System V message queue", s));

	o->o.args[1] = s->size;
	for (uint64_t i = 0; i < s->messages; i++)
		if (copy_message(a, o, i, e))
			return -1;
	o->o.size = o->bytes.len;
	return 0;
}

static int add_segment(
	struct fd_dump *d, struct sysv_asker *a, const struct sysv_status *s, struct err *e)
{
	uint32_t number = add_saved(d, IMAGE_OBJECT_SHM, "System V shared memory", s);

	return copy_segment(a, fd_object_at(d, number), e);
}

/* ---- all of them ---- */

static const struct kind {
	enum image_object_kind kind;
	const char *what;
	long info; /* the call that, with IPC_INFO, returns the highest index in use */
	int stat;  /* asks by index */
	int (*ask)(struct sysv_asker *a, int call, int which, struct sysv_status *s,
		struct err *e);
	int (*add)(struct fd_dump *d, struct sysv_asker *a, const struct sysv_status *s,
		struct err *e);
} kinds[] = {
	{IMAGE_OBJECT_SHM, "System V shared memory", SYS_shmctl, SHM_STAT, sysv_ask_segment,
		add_segment},
	{IMAGE_OBJECT_SEM, "System V semaphores", SYS_semctl, SEM_STAT, sysv_ask_semaphores,
		add_semaphores},
	{IMAGE_OBJECT_MSG, "System V message queue", SYS_msgctl, MSG_STAT, sysv_ask_queue,
		add_queue},
};

struct doubtful {
	struct buf names;
	size_t count;
};

/* Where all objects are looked at, and the process of the tree that copies what is its. */
struct search {
	struct fd_dump *d;
	const struct tree *tree;
	bool own_namespace;
	struct buf others; /* struct sysv_other_set */
	/* What may be the tree's, and is not saved: SYSV_PERHAPS_TREE, SYSV_UNUSED. */
	struct doubtful ended, unused;
	struct sysv_asker look;
	struct sysv_asker copy; /* another one than above, with no process until there is
				 * something to copy */
};

static struct sysv_asker *asker_for_copies(struct search *s, struct err *e)
{
	if (s->own_namespace)
		return &s->look;
	if (!s->copy.process && sysv_asker_begin(&s->copy, s->tree->processes[0], e)) {
		s->copy.process = NULL;
		return NULL;
	}
	return &s->copy;
}

static int highest_index(
	struct sysv_asker *a, const struct kind *k, int64_t *highest, struct err *e)
{
	/* semctl(2) has one argument more. */
	if (k->info == SYS_semctl)
		return SYSV_ASK(
			a, highest, e, SYS_semctl, 0, 0, SEM_INFO, a->scratch + SYSV_ANSWER);
	return SYSV_ASK(a, highest, e, k->info, 0, k->info == SYS_shmctl ? SHM_INFO : MSG_INFO,
		a->scratch + SYSV_ANSWER);
}

static enum sysv_owner owner_of(
	struct search *s, const struct kind *k, const struct sysv_status *o)
{
	struct sysv_other_set set = {o->id, o->size};
	enum sysv_owner owner;

	if (fd_object_numbered(s->d, k->kind, o->id))
		return SYSV_OTHERS; /* known already */
	if (k->kind == IMAGE_OBJECT_SHM && is_lowers(s->d, o->id))
		return SYSV_OTHERS;
	owner = s->own_namespace ? SYSV_TREE : sysv_owner_of(s->tree, k->kind, o);
	if (owner == SYSV_OTHERS && k->kind == IMAGE_OBJECT_SEM)
		buf_push(&s->others, struct sysv_other_set, &set);
	return owner;
}

/* So many are named. */
#define UNCERTAIN_NAMED 3

static void note_doubtful(struct doubtful *x, const struct kind *k, const struct sysv_status *o)
{
	if (++x->count <= UNCERTAIN_NAMED)
		buf_printf(&x->names, "%s%s %d", x->count > 1 ? ", " : "", k->what, o->id);
}

static void tell_doubtful(struct doubtful *x, const char *why)
{
	if (x->count > UNCERTAIN_NAMED)
		buf_printf(&x->names, " and %zu more", x->count - UNCERTAIN_NAMED);
	if (x->count)
		notice_add("not in the checkpoint: %.*s, as %s", (int)x->names.len,
			(const char *)x->names.data, why);
	buf_free(&x->names);
}

static void tell_all_doubtful(struct search *s)
{
	tell_doubtful(&s->ended, "the processes that used it have ended, and nothing says "
				 "whether they were the program's");
	tell_doubtful(&s->unused, "nobody has used it yet, and nothing says whether the "
				  "program made it (a restart finds it if it still exists)");
}

/* Before another way to run calls in the tree is begun. */
static int end_copier(struct search *s, int failed, struct err *e)
{
	if (!s->copy.process)
		return failed ? -1 : 0;
	failed = sysv_asker_end(&s->copy, failed, e);
	s->copy.process = NULL;
	return failed;
}

/* A process whose end does something to a set has used it, whichever was the last. */
static int look_for_undo(
	struct search *s, const struct sysv_status *o, enum sysv_owner *owner, struct err *e)
{
	int r = end_copier(s, 0, e) ? -1 : sysv_undo_in_tree(s->tree, o->id, o->size, e);

	if (r > 0)
		*owner = SYSV_TREE;
	return r < 0 ? -1 : 0;
}

static int dump_object(
	struct search *s, const struct kind *k, struct sysv_status *o, struct err *e)
{
	enum sysv_owner owner = owner_of(s, k, o);
	struct sysv_asker *a;

	if (owner == SYSV_PERHAPS_TREE && k->kind == IMAGE_OBJECT_SEM &&
		look_for_undo(s, o, &owner, e))
		return -1;
	if (owner == SYSV_PERHAPS_TREE || owner == SYSV_UNUSED)
		note_doubtful(owner == SYSV_UNUSED ? &s->unused : &s->ended, k, o);
	if (owner != SYSV_TREE)
		return 0;
	a = asker_for_copies(s, e);
	return a ? k->add(s->d, a, o, e) : -1;
}

static int dump_kind(struct search *s, const struct kind *k, struct err *e)
{
	int64_t highest;

	/* Negative: this kernel has none. With none in use it is 0. */
	if (highest_index(&s->look, k, &highest, e))
		return -1;
	for (int64_t i = 0; i <= highest; i++) {
		struct sysv_status o;
		int r = k->ask(&s->look, k->stat, i, &o, e);

		/* Positive: not there, or an object that this user may not look at. */
		if (!r) {
			r = dump_object(s, k, &o, e);
			sysv_status_free(&o);
		}
		if (r < 0)
			return -1;
	}
	return 0;
}

/* What no mapping shows whole. */
static int finish_segments(struct search *s, struct err *e)
{
	struct fd_dump *d = s->d;

	for (uint32_t n = 1; n <= buf_count(&d->objects, struct fd_object); n++) {
		struct fd_object *o = fd_object_at(d, n);
		struct sysv_asker *a;

		if (o->o.kind != IMAGE_OBJECT_SHM)
			continue;
		if (o->attached != o->seen)
			return err_set(e, 0,
				"%s: a process that is not being saved has attached it, too",
				o->text);
		if (o->stored || o->bytes.len)
			continue;
		a = asker_for_copies(s, e);
		if (!a || copy_segment(a, o, e))
			return -1;
	}
	return 0;
}

static int dump_all(struct search *s, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (dump_kind(s, &kinds[i], e))
			return -1;
	return finish_segments(s, e);
}

static int dump_undos(const struct search *s, struct err *e)
{
	for (size_t i = 0; i < s->tree->living; i++)
		if (sysv_dump_undo(s->d, s->tree->processes[i], &s->others, e))
			return -1;
	return 0;
}

int sysv_dump_rest(struct fd_dump *d, const struct tree *tree, struct err *e)
{
	struct search s = {.d = d, .tree = tree, .own_namespace = sysv_has_own_namespace(tree)};
	int failed = 0;

	if (!s.own_namespace)
		sysv_asker_here(&s.look);
	else if (sysv_asker_begin(&s.look, tree->processes[0], e))
		return -1;
	failed = dump_all(&s, e);
	failed = end_copier(&s, failed, e);
	failed = sysv_asker_end(&s.look, failed, e);
	if (!failed)
		failed = dump_undos(&s, e);
	tell_all_doubtful(&s);
	buf_free(&s.others);
	return failed;
}
