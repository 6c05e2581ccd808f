/*
 * file_locks.c - locks are read from fdinfo at a checkpoint, and taken again at a restart,
 * each by the call that its kind needs.
 */
#include "supervisor/fd/file_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>

#include "lib/shown_path.h"
#include "lib/util.h"

struct lock {
	char kind[16]; /* FLOCK, POSIX, OFDLCK, LEASE */
	char how[16];  /* ADVISORY; of a lease ACTIVE, or BREAKING */
	char type[16]; /* READ, WRITE */
	uint64_t first;
	char last[24]; /* a number or EOF */
};

/* A restart maps files by descriptors of its own, and such a mapping keeps the file open: then
 * nobody can have a lease for writing on it (check_conflicting_open(), fs/locks.c). */
static int check_not_mapped(const struct fd_source *s, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", s->task);
	cleanup_free char *text = NULL;
	char *line, *end, *name;
	size_t len;

	if (read_file(path, &text, &len, e))
		return -1;
	for (line = text; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		name = strchr(line, '/');
		if (name && !strcmp(shown_path(name), s->link))
			return err_set(e, 0,
				"a lease for writing on a file that is also mapped could not "
				"be restored");
	}
	return 0;
}

static int dump_lock(
	const struct fd_source *s, const struct lock *l, char **locks, struct err *e)
{
	char *old = *locks;
	bool posix = !strcmp(l->kind, "POSIX");

	if (!strcmp(l->kind, "LEASE") && strcmp(l->how, "ACTIVE"))
		return err_set(e, 0, "its lease is being broken");
	if (!posix && strcmp(l->kind, "FLOCK") && strcmp(l->kind, "OFDLCK") &&
		strcmp(l->kind, "LEASE"))
		return err_set(
			e, 0, "a lock of type %s (%s) is not supported", l->kind, l->type);
	if (!strcmp(l->kind, "LEASE") && strcmp(l->type, "READ") && check_not_mapped(s, e))
		return -1;
	*locks = xasprintf("%s%s %s %" PRIu64 " %s %d\n", old ? old : "", l->kind, l->type,
		l->first, l->last, posix ? fd_inner_pid(s->pid) : 0);
	free(old);
	return 0;
}

int fd_locks_dump(
	const struct fd_source *s, bool can_lock, bool first, char **locks, struct err *e)
{
	for (const char *line = s->info; line; line = strchr(line, '\n')) {
		struct lock l;

		line += *line == '\n';
		if (strncmp(line, "lock:", 5))
			continue;
		/* "lock:\t1: POSIX  ADVISORY  WRITE 359 00:13:11691 0 EOF" */
		if (sscanf(line, "lock: %*d: %15s %15s %15s %*d %*s %" SCNu64 " %23s", l.kind,
			    l.how, l.type, &l.first, l.last) != 5)
			return err_set(e, 0, "it holds a lock of an unknown kind");
		if (!can_lock)
			return err_set(e, 0,
				"it holds a lock (%s), which is not supported here", l.kind);
		if ((first || !strcmp(l.kind, "POSIX")) && dump_lock(s, &l, locks, e))
			return -1;
	}
	return 0;
}

/* ---- restart ---- */

/* The lock in the line at *@text, which is moved on to the next: 1, 0 behind the last, or -1.
 * *@owner is the process that holds it, of a POSIX lock. */
static int next_lock(
	const char **text, const char *path, struct lock *l, int *owner, struct err *e)
{
	const char *line = *text, *end = line ? strchr(line, '\n') : NULL;

	if (!end)
		return 0;
	if (sscanf(line, "%15s %15s %" SCNu64 " %23s %d", l->kind, l->type, &l->first, l->last,
		    owner) != 5)
		return err_set(e, 0, "cannot lock %s: the image is damaged", path);
	*text = end + 1;
	return 1;
}

static struct flock range_of(const struct lock *l)
{
	struct flock range = {
		.l_type = !strcmp(l->type, "WRITE") ? F_WRLCK : F_RDLCK,
		.l_whence = SEEK_SET,
		.l_start = l->first,
	};

	if (strcmp(l->last, "EOF"))
		range.l_len = strtoull(l->last, NULL, 10) - l->first + 1;
	return range;
}

static int take_lock(int fd, const struct lock *l)
{
	struct flock range = range_of(l);

	if (!strcmp(l->kind, "FLOCK"))
		return flock(fd, (range.l_type == F_WRLCK ? LOCK_EX : LOCK_SH) | LOCK_NB);
	if (!strcmp(l->kind, "LEASE"))
		return fcntl(fd, F_SETLEASE, range.l_type);
	return fcntl(fd, F_OFD_SETLK, &range);
}

int fd_lock_failed(int code, const char *path, struct err *e)
{
	if (code == EAGAIN || code == EACCES)
		return err_set(e, 0, "cannot lock %s: another process has locked it", path);
	return err_set(e, code, "cannot lock %s", path);
}

int fd_locks_restore(int fd, const char *text, const char *path, struct err *e)
{
	struct lock l;
	int owner, more;

	while ((more = next_lock(&text, path, &l, &owner, e)) > 0)
		if (!owner && take_lock(fd, &l))
			return fd_lock_failed(errno, path, e);
	return more;
}

/* Each descriptor of a file shows all of the process's POSIX locks on it, but only a descriptor that
 * is open for writing can lock for writing. There is one: closing it would have ended the lock. */
static bool can_take(int access, const struct flock *range)
{
	return access == O_RDWR || access == (range->l_type == F_WRLCK ? O_WRONLY : O_RDONLY);
}

int fd_locks_next_posix(const char **text, pid_t pid, int flags, const char *path,
	struct flock *range, struct err *e)
{
	struct lock l;
	int owner, more;

	while ((more = next_lock(text, path, &l, &owner, e)) > 0) {
		*range = range_of(&l);
		if (owner == pid && can_take(flags & O_ACCMODE, range))
			break;
	}
	return more;
}
