/*
 * fd_kinds/memfd.c - memfd_create(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "supervisor/fd/descriptor_range.h"
#include "supervisor/fd/hugetlb_file.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/objects_dump.h"

bool fd_memfd_match(const struct fd_dump *d, const struct fd_source *s)
{
	if (!S_ISREG(s->st.st_mode) || s->named || strncmp(s->link, "/memfd:", 7))
		return false;
	return s->st.st_dev == d->memory_device || fd_huge_shift(s->dup);
}

int fd_memfd_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	int seals = fcntl(s->dup, F_GET_SEALS);
	struct fd_object *o;

	if (seals < 0)
		return err_set(e, errno, "cannot query its seals");
	x->size = s->st.st_size;
	x->object = fd_object_of(d, s, IMAGE_OBJECT_MEMFD);
	o = fd_object_at(d, x->object);
	o->o.args[0] = seals;
	o->o.args[1] = fd_source_owner(s);
	x->path = o->o.name;
	return 0;
}

int fd_memfd_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	return fd_object_info(c->job, x->object, IMAGE_OBJECT_MEMFD, e) ? 0 : -1;
}

/* A description from memfd_create(2) itself can be written to and executed all the same; where it
 * was opened again for writing, the file cannot be executed. Which is which, nothing shows.
 */
int fd_memfd_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	struct fd_made *made = fd_made_get(r, x->object, e);
	uint32_t index = x - r->descriptions;
	int fd;

	if (!made)
		return -1;
	if ((x->flags & O_ACCMODE) != O_RDWR || made->taken[0])
		return fd_at_position(r, fd_open_object(r, made->fd, x, e), x, e);
	made->taken[0] = true;
	if (!made->mapped) {
		made->fd = fd_lift_into(r, index, made->fd, e);
		return made->fd < 0 ? -1 : fd_at_position(r, made->fd, x, e);
	}
	fd = descriptor_range_dup(r, made->fd, F_DUPFD_CLOEXEC);
	if (fd < 0)
		return descriptor_range_none(r, errno, e);
	fd = fd_lift_into(r, index, fd, e);
	return fd < 0 ? -1 : fd_at_position(r, fd, x, e);
}

unsigned fd_memfd_takes(const struct image_description *x, const struct fd_object *o)
{
	return (x->flags & O_ACCMODE) == O_RDWR && !o->is_mapped;
}

void fd_memfd_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "memfd %s, at %" PRIu64 " of %" PRIu64 " bytes",
		image_string(job, x->path), x->position, x->size);
}
