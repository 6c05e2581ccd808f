#include "supervisor/fd/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>

#include "lib/util.h"

struct lock {
	char kind[16]; /* FLOCK, POSIX, OFDLCK, LEASE */
	char how[16];  /* ADVISORY; of a lease ACTIVE, or BREAKING */
	char type[16]; /* READ, WRITE */
	uint64_t first;
	char last[24]; /* a number or EOF */
};

/* The kernel drops a process's POSIX locks on a file whenever the process closes any
 * descriptor of it; a restart opens and closes what it maps. */
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
		if (name && !strcmp(name, s->link))
			return err_set(e, 0,
				"a POSIX lock on a file that is also mapped is not supported "
				"yet");
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
	if (posix && check_not_mapped(s, e))
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

static int take(int fd, const struct lock *l)
{
	bool write = !strcmp(l->type, "WRITE");
	struct flock range = {
		.l_type = write ? F_WRLCK : F_RDLCK,
		.l_whence = SEEK_SET,
		.l_start = l->first,
	};

	if (!strcmp(l->kind, "FLOCK"))
		return flock(fd, (write ? LOCK_EX : LOCK_SH) | LOCK_NB);
	if (!strcmp(l->kind, "LEASE"))
		return fcntl(fd, F_SETLEASE, range.l_type);
	if (strcmp(l->last, "EOF"))
		range.l_len = strtoull(l->last, NULL, 10) - l->first + 1;
	return fcntl(fd, strcmp(l->kind, "POSIX") ? F_OFD_SETLK : F_SETLK, &range);
}

int fd_locks_restore(int fd, const char *text, pid_t pid, const char *path, struct err *e)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		struct lock l;
		int owner;

		line += *line == '\n';
		if (!*line)
			break;
		if (sscanf(line, "%15s %15s %" SCNu64 " %23s %d", l.kind, l.type, &l.first,
			    l.last, &owner) != 5)
			return err_set(e, 0, "cannot lock %s: the image is damaged", path);
		if (owner && owner != pid)
			continue;
		if (!take(fd, &l))
			continue;
		if (errno == EAGAIN || errno == EACCES || errno == EWOULDBLOCK)
			return err_set(
				e, 0, "cannot lock %s: another process has locked it", path);
		return err_set(e, errno, "cannot lock %s", path);
	}
	return 0;
}
