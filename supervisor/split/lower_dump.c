/* What an image says of a lower half, which is not in it: the files it is made of, for a
 * restart to see that they are there. */
#include "supervisor/split/lower_dump.h"

#include <string.h>

#include "supervisor/split/lower_half.h"
#include "supervisor/target/module.h"

static bool is_known(const struct buf *paths, const char *name)
{
	for (size_t i = 0; i < buf_count(paths, const char *); i++)
		if (!strcmp(*buf_at(paths, const char *, i), name))
			return true;
	return false;
}

int dump_lower(struct dump *d, struct err *e)
{
	cleanup_buf struct buf paths = {0};

	if (!d->process->lower)
		return 0;
	for (size_t i = 0; i < d->vmas.count; i++) {
		const struct vma *v = &d->vmas.v[i];
		const char *name = v->name;
		struct image_module m = {.inode = v->inode};

		/* Devices and shared memory are the driver's own business. */
		if (!in_lower_window(v->start) || v->shared || name[0] != '/' ||
			strstr(name, " (deleted)") || !strncmp(name, "/dev/", 5) ||
			is_known(&paths, name))
			continue;
		buf_push(&paths, const char *, &name);
		if (module_identify(d->modules, name, v->inode, &m, e))
			return -1;
		m.path = image_writer_string(d->writer, name);
		image_writer_note(d->writer, IMAGE_NOTE_LOWER, &m, sizeof(m));
	}
	image_writer_incompat(d->writer, IMAGE_INCOMPAT_LOWER);
	return 0;
}
