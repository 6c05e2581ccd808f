/*
 * shared_window.c - which part of the memory of a window is a rank's, and the file that ranks come together in.
 */
#include "supervisor/fd/shared_window.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/util.h"
#include "shared/shared_window.h"

bool fd_window_is(const char *name)
{
	return !strncmp(name, SHARED_WINDOW_PREFIX, strlen(SHARED_WINDOW_PREFIX)) &&
	       strlen(name) >= strlen(SHARED_WINDOW_PREFIX) + SHARED_WINDOW_DIGITS;
}

/* ---- at a checkpoint ---- */

static int damaged(pid_t pid, struct err *e)
{
	return err_set(e, 0,
		"process %d: what tells the parts of a window of memory that ranks share "
		"(MPI_Win_allocate_shared) has been overwritten",
		pid);
}

static int read_head(pid_t pid, uint64_t address, void *to, size_t size, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/mem", pid);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, errno, "cannot open %s", path);
	return pread_all(fd, to, size, address, path, e);
}

/* Whatever the program has made of them. */
static int find_part(const struct shared_window_rank *ranks, uint32_t count, int rank,
	uint64_t *from, uint64_t *to)
{
	for (uint32_t i = 0; i < count; i++) {
		if (ranks[i].rank != rank)
			continue;
		*from = ranks[i].from;
		*to = i + 1 < count ? ranks[i + 1].from : UINT64_MAX;
		return *from <= *to && !(*from % SHARED_WINDOW_PAGE) &&
				       (i + 1 == count || !(*to % SHARED_WINDOW_PAGE)) &&
				       (i || !*from)
			       ? 0
			       : -1;
	}
	return -1;
}

int fd_window_part(
	pid_t pid, uint64_t address, int rank, uint64_t *from, uint64_t *to, struct err *e)
{
	cleanup_free struct shared_window_rank *ranks = NULL;
	struct shared_window head;

	*from = 0;
	*to = UINT64_MAX;
	if (rank < 0)
		return 0;
	if (read_head(pid, address, &head, sizeof(head), e))
		return -1;
	if (head.magic != SHARED_WINDOW_MAGIC || !head.ranks ||
		head.ranks > SHARED_WINDOW_RANKS)
		return damaged(pid, e);
	if (head.freed)
		return 0;
	ranks = xcalloc(head.ranks, sizeof(*ranks));
	if (read_head(pid, address + sizeof(head), ranks, head.ranks * sizeof(*ranks), e))
		return -1;
	return find_part(ranks, head.ranks, rank, from, to) ? damaged(pid, e) : 0;
}

/* ---- at a restart ---- */

static const char *the_restart;

void fd_window_share(const char *restart)
{
	the_restart = restart;
}

bool fd_window_is_shared(const char *name)
{
	return the_restart && fd_window_is(name);
}

static char *name_here(const char *name)
{
	return xasprintf("%.*s-%s", (int)strlen(SHARED_WINDOW_PREFIX) + SHARED_WINDOW_DIGITS,
		name, the_restart);
}

/* Whoever comes first makes it. Of a file that is there O_CREAT is refused where it is another user's, as it is by now
 * when root brings back a user's program (fs.protected_regular). */
static int open_or_create(const char *path)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
	int fd;

	do {
		fd = open(path, flags);
		if (fd < 0 && errno == ENOENT)
			fd = open(path, flags | O_CREAT | O_EXCL, 0600);
	} while (fd < 0 && errno == EEXIST);
	return fd;
}

int fd_window_open(const char *name, uid_t owner, struct err *e)
{
	cleanup_free char *path = name_here(name);
	cleanup_fd int fd = open_or_create(path);
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || fstatfs(fd, &fs))
		return err_set(e, errno,
			"cannot create %s, memory that ranks share in a window of MPI", path);
	/* Another user could have made it, and kept a descriptor; the program's owner may have it by now. */
	if (!S_ISREG(st.st_mode) || st.st_mode & 077 || st.st_nlink != 1 ||
		(st.st_uid != geteuid() && st.st_uid != owner) || fs.f_type != TMPFS_MAGIC)
		return err_set(e, 0,
			"cannot create %s, memory that ranks share in a window of MPI: it is "
			"another's, or in no memory",
			path);
	return steal_fd(&fd);
}

void fd_window_remove_names(const struct image *job)
{
	const struct image_object *o;
	size_t count;

	if (!the_restart)
		return;
	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++) {
		const char *name = image_string(job, o[i].name);
		cleanup_free char *path = NULL;

		if (o[i].kind != IMAGE_OBJECT_UNLINKED || !fd_window_is(name))
			continue;
		path = name_here(name);
		(void)unlink(path); /* another rank was faster: all the same */
	}
}
