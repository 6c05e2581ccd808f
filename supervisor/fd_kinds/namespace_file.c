/*
 * fd_kinds/namespace_file.c - namespaces, opened as files of /proc/PID/ns.
 *
 * The program's own namespaces come from the process that restarts it, or are made for it, and
 * are opened again as the new process's own. Others are kept by somebody outside, or by the
 * descriptor alone: nothing can make those again.
 */
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/target/process.h"

#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif

/* The last two are for future children. */
static const char *const names[] = {"net", "mnt", "pid", "user", "uts", "ipc", "time", "cgroup",
	"pid_for_children", "time_for_children"};

/* A namespace that is mounted somewhere (ip-netns(8)) has a name, and is opened by that. */
bool fd_namespace_match(const struct fd_dump *d, const struct fd_source *s)
{
	struct statfs fs;

	return S_ISREG(s->st.st_mode) && s->link[0] != '/' && !fstatfs(s->dup, &fs) &&
	       fs.f_type == NSFS_MAGIC;
}

static bool is_of(const struct fd_source *s, pid_t task, const char *name)
{
	cleanup_free char *path = xasprintf("/proc/%d/ns/%s", task, name);
	struct stat st;

	return !stat(path, &st) && st.st_dev == s->st.st_dev && st.st_ino == s->st.st_ino;
}

int fd_namespace_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (is_of(s, s->task, names[i])) {
			x->path = image_writer_string(d->job, names[i]);
			return 0;
		}
	return err_set(e, 0,
		"the program is not in this namespace: only those of the program's own "
		"namespaces can be opened again");
}

int fd_namespace_check(
	const struct fd_check *c, const struct image_description *x, struct err *e)
{
	const char *name = image_string(c->job, x->path);
	cleanup_free char *path = NULL;
	size_t i = 0;

	while (i < ARRAY_SIZE(names) && strcmp(names[i], name))
		i++;
	if (i == ARRAY_SIZE(names))
		return err_set(e, 0, "the image is damaged: a namespace");
	path = xasprintf("/proc/self/ns/%s", name);
	return access(path, F_OK)
		       ? err_set(e, errno, "cannot open %s (descriptor %d)", path, c->fd)
		       : 0;
}

int fd_namespace_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/self/ns/%s", image_string(r->job, x->path));

	return fd_open_again(r, path, x, e);
}

void fd_namespace_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "namespace of its own: %s", image_string(job, x->path));
}
