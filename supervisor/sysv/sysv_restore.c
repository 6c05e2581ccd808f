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

#include "lib/limits.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/sysv/sysv.h"
#include "supervisor/sysv/sysv_kinds.h"

/* LEFT_ALONE: nobody has used it, then as now. */
enum presence { ABSENT, LEFTOVER, TAKEN, LEFT_ALONE };

/* What an older trecr took to be the program's by a guess is left to its owner. */
static const struct sysv_kind *kind_of(const struct image_object *o)
{
	return o->flags & IMAGE_SYSV_GUESSED ? NULL : sysv_kind_of(o->kind);
}

static const struct image_object *objects_of(const struct image *job, size_t *count)
{
	return image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, count);
}

/* ---- what is there already ---- */

static enum presence look_for_object(const struct sysv_kind *k, const struct image_object *o)
{
	struct sysv_found found;

	if (k->look(o, &found))
		return errno == EINVAL || errno == EIDRM ? ABSENT : TAKEN;
	if (found.key != (key_t)o->dev || found.size != o->size || found.used_by_now)
		return TAKEN;
	return o->flags & IMAGE_SYSV_UNUSED && !found.ever_used ? LEFT_ALONE : LEFTOVER;
}

/* Whether another object has its key; EACCES: an object that we may not use. */
static bool key_is_taken(const struct sysv_kind *k, const struct image_object *o)
{
	int id;

	if (!(key_t)o->dev)
		return false;
	id = k->find(o->dev);
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
		const struct sysv_kind *k = kind_of(&o[i]);
		enum presence p = k ? look_for_object(k, &o[i]) : LEFTOVER;

		if (p == TAKEN || (k && key_is_taken(k, &o[i])))
			return xasprintf("%s %d is in use", k->what, (int)o[i].inode);
		if (p == ABSENT) {
			cleanup_fd int fd = open(k->next_id, O_WRONLY | O_CLOEXEC);

			if (fd < 0)
				return xstrdup("choosing System V ids requires "
					       "CAP_CHECKPOINT_RESTORE here");
		}
	}
	return NULL;
}

void sysv_list(const struct checkpoint *c, bool left_over, struct buf *list)
{
	const struct image_object *o;
	size_t count;

	o = objects_of(c->job, &count);
	for (size_t i = 0; i < count; i++) {
		const struct sysv_kind *k = kind_of(&o[i]);

		if (k && look_for_object(k, &o[i]) == (left_over ? LEFTOVER : ABSENT))
			buf_push(list, struct image_object, &o[i]);
	}
}

void sysv_remove(const struct buf *list)
{
	for (size_t i = 0; i < buf_count(list, struct image_object); i++) {
		const struct image_object *o = buf_at(list, struct image_object, i);

		sysv_kind_of(o->kind)->remove(o->inode);
	}
}

/* ---- making them ---- */

/* Without the name of the directory in it: the error names the object. */
static int choose_id(const struct sysv_kind *k, uint64_t id, struct err *e)
{
	cleanup_fd int fd = open(k->next_id, O_WRONLY | O_CLOEXEC);
	cleanup_free char *text = xasprintf("%" PRIu64, id);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return err_set(e, errno, "cannot choose an id (%s)", k->next_id);
	return 0;
}

/* Its id is to be free, or the id of the object that we know. */
static int make_object(const struct sysv_kind *k, const struct image_object *o, struct err *e)
{
	const char *why;
	int id, code;

	if (choose_id(k, o->inode, e))
		return -1;
	id = k->make(o);
	code = errno;
	why = id < 0 && k->why_not_made ? k->why_not_made(o) : NULL;
	if (why)
		return err_set(e, code, "%s", why);
	if (id < 0 && code == EEXIST)
		return err_with(e, ERR_ID_TAKEN, "its key is in use");
	if (id < 0)
		return limit_err(e, code, k->get, "cannot create it again");
	if (id == (int)o->inode)
		return 0;
	k->remove(id);
	return err_with(e, ERR_ID_TAKEN, "its id is in use");
}

static int let_us_in(const struct sysv_kind *k, const struct image_object *o, struct err *e)
{
	return k->let_in(o->inode) ? limit_err(e, errno, k->set, "cannot set its mode") : 0;
}

static int restore_one(
	struct fd_restore *r, const struct sysv_kind *k, uint32_t number, struct err *e)
{
	const struct image_object *o = &r->objects[number - 1];

	if (o->size > 1ull << 40 || o->args[1] > 1ull << 40 ||
		(k->is_damaged && k->is_damaged(o)))
		return err_set(e, 0, "the image is damaged");
	if (look_for_object(k, o) == LEFT_ALONE)
		return 0;
	if (look_for_object(k, o) == ABSENT ? make_object(k, o, e) : let_us_in(k, o, e))
		return -1;
	/* A trial takes no contents, but adjustments (SEM_UNDO) are to fit the values. */
	if (r->options->alive && !k->has_undo)
		return 0;
	return k->fill(r, number, o, e);
}

int sysv_restore(struct fd_restore *r, struct err *e)
{
	for (uint32_t n = 1; n <= r->object_count; n++) {
		const struct sysv_kind *k = kind_of(&r->objects[n - 1]);

		if (k && restore_one(r, k, n, e))
			return err_prefix(e, "%s %d", k->what, (int)r->objects[n - 1].inode);
	}
	return 0;
}
