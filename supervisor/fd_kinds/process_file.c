/*
 * fd_kinds/process_file.c - files and directories of /proc that belong to a process of the tree.
 *
 * What such a file leads to is settled when it is opened: the process's memory of that moment
 * (proc_maps_open(), mem_open() in the kernel). So a descriptor that leads nowhere keeps the
 * place, and each process opens its own when all of them are what they were
 * (restore/task_files_restore.c). Processes that shared one description have one each then.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/target/process.h"
#include "supervisor/target/remote.h"

/* Flags of open(2) that have done their work. */
#define ONCE (O_CREAT | O_EXCL | O_TRUNC | O_ASYNC)

/* The process that @link names, as its /proc knows it; 0: none. */
static pid_t owner_of(const char *link)
{
	unsigned pid;

	return sscanf(link, "/proc/%u", &pid) == 1 ? (pid_t)pid : 0;
}

bool fd_process_file_match(const struct fd_dump *d, const struct fd_source *s)
{
	struct statfs fs;

	return (S_ISREG(s->st.st_mode) || S_ISDIR(s->st.st_mode)) && owner_of(s->link) &&
	       !fstatfs(s->dup, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

static bool is_saved(const struct fd_dump *d, pid_t vpid)
{
	for (size_t i = 0; d->tree && i < d->tree->living; i++)
		if (d->tree->processes[i]->vpid == vpid)
			return true;
	return false;
}

int fd_process_file_dump(struct fd_dump *d, const struct fd_source *s,
	struct image_description *x, struct err *e)
{
	/* A program that lists processes, as ps, has such a file open for a moment only. */
	if (!is_saved(d, owner_of(s->link)))
		return err_with(e, ERR_TRY_AGAIN,
			"it belongs to process %d, which is not being saved",
			owner_of(s->link));
	x->path = image_writer_string(d->job, s->link);
	return 0;
}

/* The path goes into a page of the process. */
int fd_process_file_check(
	const struct fd_check *c, const struct image_description *x, struct err *e)
{
	const char *path = image_string(c->job, x->path);

	return owner_of(path) && strlen(path) < 4096
		       ? 0
		       : err_set(e, 0, "the image is damaged: a file of a process");
}

int fd_process_file_restore(
	struct fd_restore *r, const struct image_description *x, struct err *e)
{
	struct image_description place = {.flags = 0};

	return fd_open_again(r, "/dev/null", &place, e);
}

bool fd_process_file_needs_threads(const struct image_description *x)
{
	return true;
}

int fd_process_file_open_remotely(struct remote *remote, uint64_t scratch,
	const struct image *job, const struct image_description *x, int64_t *opened,
	struct err *e)
{
	const char *path = image_string(job, x->path);
	int64_t result;

	if (tracee_write(remote->process->mem_fd, scratch, path, strlen(path) + 1, e) ||
		REMOTE_CALL(remote, opened, e, SYS_openat, AT_FDCWD, scratch,
			x->flags & ~(uint32_t)ONCE, 0))
		return -1;
	if (*opened < 0)
		return err_set(e, -*opened, "cannot open %s again", path);
	if (REMOTE_CALL(remote, &result, e, SYS_lseek, *opened, x->position, SEEK_SET))
		return -1;
	/* Files that cannot seek are always at position 0. */
	return result < 0 && x->position
		       ? err_set(e, -result, "cannot set the position in %s", path)
		       : 0;
}

void fd_process_file_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "%s, at %" PRIu64, image_string(job, x->path), x->position);
}
