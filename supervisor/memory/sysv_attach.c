/*
 * What a process does by itself about System V objects: attach segments, and have operations
 * undone at its end.
 */
#include "supervisor/memory/sysv_attach.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/fd/objects_restore.h"
#include "supervisor/sysv/sysv.h"
#include "supervisor/sysv/sysv_kinds.h"

static const struct image_region *regions_of(const struct image *img, size_t *count)
{
	return image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, count);
}

static const struct image_object *object_of(
	const struct restore_plan *p, const struct image_region *g)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(p->c->job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	return g->object && g->object <= count && o[g->object - 1].kind == IMAGE_OBJECT_SHM
		       ? &o[g->object - 1]
		       : NULL;
}

/* Where the segment was attached, of which @g is a part. */
static uint64_t base_of(const struct image_region *g)
{
	return g->start - g->offset;
}

static bool same_attachment(const struct image_region *a, const struct image_region *b)
{
	return b->kind == IMAGE_REGION_SYSV && a->object == b->object &&
	       base_of(a) == base_of(b);
}

static bool is_first(const struct image_region *g, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (same_attachment(&g[i], &g[k]))
			return false;
	return true;
}

static bool is_first_of_object(const struct image_region *g, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (g[k].kind == IMAGE_REGION_SYSV && g[k].object == g[i].object)
			return false;
	return true;
}

/* Whether an earlier process has attached the segment, and so removed it. */
static bool was_attached(const struct restore_plan *p, uint32_t object)
{
	for (size_t i = 0; i < p->index; i++)
		if (sysv_attaches(p->c->processes[i], object))
			return true;
	return false;
}

static uint32_t prot_of(const struct image_region *g)
{
	return PROT_READ | (g->max_prot & PROT_WRITE) | (g->prot & PROT_EXEC);
}

/* The parts of the attachment of @g[i] that are no longer mapped. */
static void add_holes(struct restore_plan *p, const struct image_region *g, size_t count,
	size_t i, uint64_t size)
{
	uint64_t at = base_of(&g[i]), end = at + size;

	for (size_t k = 0; k < count; k++) {
		if (!same_attachment(&g[i], &g[k]))
			continue;
		if (g[k].start > at)
			BATCH_ADD(&p->memory, "unmap memory", SYS_munmap, at, g[k].start - at);
		at = g[k].end;
		if (g[k].prot != prot_of(&g[i]))
			BATCH_ADD(&p->memory, "protect memory", SYS_mprotect, g[k].start,
				g[k].end - g[k].start, g[k].prot);
	}
	if (at < end)
		BATCH_ADD(&p->memory, "unmap memory", SYS_munmap, at, end - at);
}

static void add_attach(
	struct restore_plan *p, const struct image_region *g, const struct image_object *o)
{
	uint64_t flags = 0;
	struct batch_call *c;

	if (!(g->max_prot & PROT_WRITE))
		flags |= SHM_RDONLY;
	if (g->prot & PROT_EXEC)
		flags |= SHM_EXEC;
	c = BATCH_ADD(&p->memory, "attach System V shared memory", SYS_shmat, o->inode,
		base_of(g), flags);
	c->check = BATCH_EQUALS;
	c->expect = base_of(g);
}

static void add_attachment(
	struct restore_plan *p, const struct image_region *g, size_t count, size_t i)
{
	const struct image_object *o = object_of(p, &g[i]);

	add_attach(p, &g[i], o);
	/* A segment that was removed while it was in use goes with its last user. */
	if (o->mode & SHM_DEST && !was_attached(p, g[i].object))
		BATCH_ADD(&p->memory, "remove System V shared memory", SYS_shmctl, o->inode,
			IPC_RMID, 0);
	add_holes(p, g, count, i, sysv_mapped_size(o));
}

/* Whether a part of attachment @part lies where all of attachment @whole is to be, before it gets
 * its holes. */
static bool is_in_the_way(const struct restore_plan *p, const struct image_region *g,
	size_t count, size_t part, size_t whole)
{
	uint64_t from = base_of(&g[whole]);
	uint64_t to = from + sysv_mapped_size(object_of(p, &g[whole]));

	for (size_t k = 0; k < count; k++)
		if (same_attachment(&g[part], &g[k]) && g[k].start < to && from < g[k].end)
			return true;
	return false;
}

/* Segments whose first regions are marked in @left are not attached yet: the first of them that is
 * in no other's way. @count: there is none. */
static size_t next_attachment(const struct restore_plan *p, const struct image_region *g,
	size_t count, const bool *left)
{
	size_t i, other;

	for (i = 0; i < count; i++) {
		for (other = 0; left[i] && other < count; other++)
			if (other != i && left[other] && is_in_the_way(p, g, count, i, other))
				break;
		if (left[i] && other == count)
			break;
	}
	return i;
}

int restore_plan_segments(struct restore_plan *p, struct err *e)
{
	size_t count, attachments = 0, next;
	const struct image_region *g = regions_of(p->img, &count);
	cleanup_free bool *left = xcalloc(count, sizeof(*left));

	for (size_t i = 0; i < count; i++) {
		if (g[i].kind != IMAGE_REGION_SYSV)
			continue;
		if (!object_of(p, &g[i]) || g[i].offset > g[i].start)
			return err_set(e, 0, "the image names a segment that it does not have");
		left[i] = is_first(g, i);
		attachments += left[i];
	}
	for (; attachments; attachments--) {
		next = next_attachment(p, g, count, left);
		if (next == count)
			return err_set(e, 0,
				"cannot attach System V shared memory again: each of several "
				"segments "
				"lies in a hole of another");
		add_attachment(p, g, count, next);
		left[next] = false;
	}
	return 0;
}

/* First as the one of us who makes the call, who has made the object or may set any; then as who had it, whom a user
 * namespace may not know (EINVAL): see sysv_set_perm(). */
static void add_mode(struct restore_plan *p, const struct image_object *o)
{
	struct shmid_ds d = {
		.shm_perm = {.uid = geteuid(), .gid = getegid(), .mode = o->mode & 0777}};

	BATCH_ADD(&p->rest, "set the mode of System V shared memory", SYS_shmctl, o->inode,
		IPC_SET, plan_data(&p->plan, &d, sizeof(d)));
	d.shm_perm.uid = o->args[0];
	d.shm_perm.gid = o->args[0] >> 32;
	BATCH_ADD(&p->rest, "set the owner of System V shared memory", SYS_shmctl, o->inode,
		IPC_SET, plan_data(&p->plan, &d, sizeof(d)))
		->check = BATCH_ANY;
}

void restore_plan_segment_modes(struct restore_plan *p)
{
	size_t count;
	const struct image_region *g = regions_of(p->img, &count);

	for (size_t i = 0; i < count; i++) {
		const struct image_object *o =
			g[i].kind == IMAGE_REGION_SYSV ? object_of(p, &g[i]) : NULL;

		if (o && sysv_keeps_owner_out(o) && is_first_of_object(g, i) &&
			!was_attached(p, g[i].object))
			add_mode(p, o);
	}
}

#define VALUE_MAX 32767 /* SEMVMX (include/uapi/linux/sem.h) */

/* An operation that leads to @part being added at the end, and another that takes back its effect
 * on the value. */
static void add_pair(struct buf *ops, unsigned short number, int part, bool undo_first)
{
	struct sembuf pair[2] = {
		{number, -part, IPC_NOWAIT | SEM_UNDO}, {number, part, IPC_NOWAIT}};

	buf_push(ops, struct sembuf, &pair[!undo_first]);
	buf_push(ops, struct sembuf, &pair[undo_first]);
}

/* Operations that leave the value as it is, and @undo to be added at the end. Between the two
 * of a pair the value is in its range, too: they go to where there is more room, which may take
 * several. */
static void add_undo(
	struct restore_plan *p, uint64_t id, const struct image_sem_undo *u, int value)
{
	bool down = value >= VALUE_MAX - value;
	int room = down ? value : VALUE_MAX - value;
	cleanup_buf struct buf ops = {0};

	for (int left = u->undo, part; left; left -= part) {
		part = left > room ? room : left < -room ? -room : left;
		add_pair(&ops, u->number, part, down == (part > 0));
	}
	BATCH_ADD(&p->rest, "set what is undone at the end (SEM_UNDO)", SYS_semop, id,
		plan_data(&p->plan, ops.data, ops.len), buf_count(&ops, struct sembuf));
}

static int add_undos(struct restore_plan *p, uint32_t number, const struct image_object *o,
	int32_t pid, struct err *e)
{
	cleanup_buf struct buf all = {0};
	const char *data = buf_grow(&all, o->size);
	size_t at = o->args[1] * sizeof(uint16_t);

	if (fd_contents(p->c->job, number, o->size, all.data, e))
		return -1;
	for (; at + sizeof(struct image_sem_undo) <= o->size;
		at += sizeof(struct image_sem_undo)) {
		struct image_sem_undo u;
		uint16_t value;

		memcpy(&u, data + at, sizeof(u));
		if (u.pid != pid || u.number >= o->args[1])
			continue;
		memcpy(&value, data + u.number * sizeof(value), sizeof(value));
		if (value > VALUE_MAX)
			return err_set(e, 0, "the image is damaged: a semaphore's value");
		add_undo(p, o->inode, &u, value);
	}
	return 0;
}

int restore_plan_undos(struct restore_plan *p, int32_t pid, struct err *e)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(p->c->job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++)
		if (o[i].kind == IMAGE_OBJECT_SEM && add_undos(p, i + 1, &o[i], pid, e))
			return -1;
	return 0;
}
