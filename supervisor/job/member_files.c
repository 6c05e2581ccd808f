/*
 * member_files.c - reading and writing these files, which members live, and which of them reports
 * that a job cannot start.
 */
#include "supervisor/job/member_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "ckpt/trust.h"
#include "supervisor/job/member_text.h"
#include "supervisor/job/this_process.h"

#define JOB_FOLDER "ranks"
#define JOB_VOICE  "refused"
#define JOB_GIVEN  "given-up"

/* For supervisors that have been killed: on a busy machine that takes a moment. */
#define GRACE_NS 3000000000ull

/* For so long nobody else complains. */
#define COMPLAINT_S 2

/* The folder of the members, which only we can write to; -1 with errno ENOENT when there is
 * none. */
static int open_folder(const char *dir, struct err *e)
{
	cleanup_free char *path = xasprintf("%s/" JOB_FOLDER, dir);
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0) {
		int code = errno;

		err_set(e, code, "cannot open %s", path);
		errno = code;
		return -1;
	}
	if (trust_check(fd, path, e) < 0) {
		errno = 0;
		return -1;
	}
	return steal_fd(&fd);
}

static int make_folder(const char *dir, struct err *e)
{
	cleanup_free char *path = xasprintf("%s/" JOB_FOLDER, dir), *absolute = NULL;
	bool is_new = !mkdir(dir, 0700);

	if ((!is_new && errno != EEXIST) || (mkdir(path, 0700) < 0 && errno != EEXIST))
		return err_set(e, errno, "cannot create %s", path);
	/* As where one supervisor makes it (ckpt/store.c). */
	absolute = is_new ? realpath(dir, NULL) : NULL;
	if (absolute && sync_directory_of(absolute, e))
		return -1;
	return open_folder(dir, e);
}

static int read_member(int fd, struct job_member *m)
{
	char text[MEMBER_TEXT_MAX] = "";

	return pread(fd, text, sizeof(text) - 1, 0) < 0 ? -1 : member_parse(text, m);
}

/* ---- whether a member lives ---- */

/* What runs beside us can be looked at, also where there are no locks. */
static enum member_life look_for_process(const struct job_member *m)
{
	if (!job_member_is_here(m))
		return MEMBER_UNSURE;
	return process_start_time(m->supervisor) == m->start_time ? MEMBER_LIVES : MEMBER_DEAD;
}

bool job_member_is_here(const struct job_member *m)
{
	char here[sizeof(m->machine)];

	this_machine(here, sizeof(here));
	return !strcmp(here, m->machine);
}

/* A lock that is held says that it lives, to anybody. That none is, says so on its own
 * machine only. */
static enum member_life life_of(int fd, const struct job_member *m)
{
	if (flock(fd, LOCK_SH | LOCK_NB))
		return errno == EWOULDBLOCK ? MEMBER_LIVES : look_for_process(m);
	/* Before somebody else finds it held. */
	(void)flock(fd, LOCK_UN);
	return this_boot(m->machine) ? MEMBER_DEAD : MEMBER_UNSURE;
}

static int open_member(int folder, int rank, struct job_member *m)
{
	cleanup_fd int fd = -1;
	char name[16];

	snprintf(name, sizeof(name), "%d", rank);
	fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || read_member(fd, m) < 0 || m->rank != rank)
		return -1;
	m->life = life_of(fd, m);
	return 0;
}

int job_member_of(const char *dir, int rank, struct job_member *m)
{
	cleanup_fd int folder = open_folder(dir, NULL);

	return folder < 0 || open_member(folder, rank, m) || m->life == MEMBER_DEAD ? -1 : 0;
}

/* ---- joining ---- */

static int refuse_taken(const struct job_member *m, const char *dir, struct err *e)
{
	return err_set(e, 0,
		"rank %d of the job in %s is running already (supervisor %d on %s); another "
		"job takes a directory of its own",
		m->rank, dir, m->supervisor, m->host);
}

/* On the disk, as other machines see it only then. */
static int write_text(const struct job *job, const char *what, struct err *e)
{
	cleanup_free char *text = member_text(&job->self);

	if (pwrite_all(job->fd, text, strlen(text), 0, what, e))
		return -1;
	return fsync(job->fd) ? err_set(e, errno, "cannot write %s", what) : 0;
}

static int write_member(const struct job *job, struct err *e)
{
	cleanup_free char *what = xasprintf("%s/" JOB_FOLDER "/%d", job->dir, job->rank);

	/* Others may read it at any moment: until its last line is there it is none. */
	if (ftruncate(job->fd, 0) < 0 || fchmod(job->fd, 0600) < 0)
		return err_set(e, errno, "cannot write %s", what);
	return write_text(job, what, e);
}

/* Whose file it is, if that member lives. */
static bool is_taken(int fd, job_probe *probe, struct job_member *m)
{
	if (read_member(fd, m) < 0)
		return false;
	return m->life == MEMBER_LIVES || look_for_process(m) == MEMBER_LIVES ||
	       (!this_boot(m->machine) && probe(m));
}

static int join_folder(struct job *job, job_probe *probe, struct err *e)
{
	cleanup_fd int folder = make_folder(job->dir, e);
	struct job_member other = {.rank = job->rank, .host = "another node"};
	char name[16];

	if (folder < 0)
		return -1;
	snprintf(name, sizeof(name), "%d", job->rank);
	job->fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (job->fd < 0)
		return err_set(e, errno, "cannot create %s/" JOB_FOLDER "/%s", job->dir, name);
	/* A process that only looks holds the lock for a moment, too, and a killed one for longer on a busy
	 * machine. */
	if (flock_until(job->fd, LOCK_EX, clock_ns(CLOCK_MONOTONIC) + GRACE_NS) &&
		errno == EWOULDBLOCK) {
		(void)read_member(job->fd, &other);
		return refuse_taken(&other, job->dir, e);
	}
	/* Without locks, or where they are each node's own. */
	return is_taken(job->fd, probe, &other) ? refuse_taken(&other, job->dir, e) : 0;
}

struct job *job_join(
	const char *dir, const struct job_member *self, job_probe *probe, struct err *e)
{
	struct job *job = xcalloc(1, sizeof(*job));

	*job = (struct job){.dir = xstrdup(dir),
		.rank = self->rank,
		.size = self->size,
		.fd = -1,
		.self = *self};
	this_process(&job->self);
	if (self->size > JOB_SIZE_MAX)
		err_set(e, 0, "a job of %d ranks is too large: %d at most", self->size,
			JOB_SIZE_MAX);
	else if (!join_folder(job, probe, e) && !write_member(job, e))
		return job;
	util_close(&job->fd);
	free(job->dir);
	free(job);
	return NULL;
}

int job_write_self(const struct job *job, struct err *e)
{
	return write_text(job, JOB_FOLDER, e);
}

void job_leave(struct job *job)
{
	struct job_member now;

	/* If it is not, it is as good as empty: without a lock, it is history. */
	if (job && !read_member(job->fd, &now) &&
		!memcmp(now.secret, job->self.secret, sizeof(now.secret)))
		(void)!ftruncate(job->fd, 0);
}

/* ---- all members ---- */

/* All members that @dir knows of, struct job_member by rank; also ended ones. None
 * is no error. */
static int all_members(const char *dir, struct buf *members, struct err *e)
{
	cleanup_fd int folder = open_folder(dir, e);
	int size = 1;

	if (folder < 0)
		return errno == ENOENT ? 0 : -1;
	/* Members of an earlier job of more ranks have ended. */
	for (int rank = 0; rank < JOB_SIZE_MAX; rank++) {
		struct job_member m;

		if (open_member(folder, rank, &m) < 0) {
			if (rank >= size)
				break;
			continue;
		}
		if (m.life != MEMBER_DEAD)
			size = m.size > size ? m.size : size;
		buf_push(members, struct job_member, &m);
	}
	return 0;
}

/* The number of members according to the living ones, the surest first; 0: none lives. */
static int size_of(const struct buf *members)
{
	for (enum member_life life = MEMBER_LIVES; life > MEMBER_DEAD; life--)
		for (size_t i = 0; i < buf_count(members, struct job_member); i++)
			if (buf_at(members, struct job_member, i)->life == life)
				return buf_at(members, struct job_member, i)->size;
	return 0;
}

static const struct job_member *member_of(const struct buf *members, int rank)
{
	for (size_t i = 0; i < buf_count(members, struct job_member); i++) {
		const struct job_member *m = buf_at(members, struct job_member, i);

		if (m->rank == rank && m->life != MEMBER_DEAD)
			return m;
	}
	return NULL;
}

/* A rank that has ended was here from another node than @host: so nodes share the directory. */
static bool has_been_elsewhere(const struct buf *all, const char *host, int size)
{
	for (size_t i = 0; i < buf_count(all, struct job_member); i++) {
		const struct job_member *m = buf_at(all, struct job_member, i);

		if (m->life == MEMBER_DEAD && m->size == size && strcmp(m->host, host))
			return true;
	}
	return false;
}

/* All ranks that the launcher has started on one node are there, and no other: ranks on other
 * nodes have another directory of the same name. */
static const struct job_member *only_node(const struct buf *all, int size)
{
	const struct job_member *first = NULL;
	int count = 0;

	for (size_t i = 0; i < buf_count(all, struct job_member); i++) {
		const struct job_member *m = buf_at(all, struct job_member, i);

		if (m->life == MEMBER_DEAD)
			continue;
		if (first && strcmp(first->host, m->host))
			return NULL;
		first = first ? first : m;
		count++;
	}
	return first && first->local == count && count < size &&
			       !has_been_elsewhere(all, first->host, size)
		       ? first
		       : NULL;
}

static int say_missing(
	const char *dir, const struct buf *all, int rank, int size, struct err *e)
{
	const struct job_member *node = only_node(all, size);

	if (node)
		return err_set(e, 0,
			"%s is not shared by the nodes of the job: of its %d ranks, only the "
			"%d on %s are in it; choose a directory on a file system that all "
			"nodes see",
			dir, size, node->local, node->host);
	return err_set(e, 0,
		"rank %d of the %d ranks of the job in %s is not there: it has ended, or not "
		"started, or without trecr-run, or has another directory (all have the same, "
		"on a file system that "
		"their nodes share, or each its own with --alone)",
		rank, size, dir);
}

static int check_living(
	const char *dir, const struct buf *all, struct buf *living, struct err *e)
{
	int size = size_of(all);

	if (!size)
		return err_set(e, 0, "there is no running job in %s", dir);
	for (int rank = 0; rank < size; rank++) {
		const struct job_member *m = member_of(all, rank);

		if (!m)
			return say_missing(dir, all, rank, size, e);
		if (m->size != size)
			return err_set(e, 0,
				"ranks of two jobs are in %s: one of %d and one of %d ranks",
				dir, size, m->size);
		buf_push(living, struct job_member, m);
	}
	return 0;
}

int job_living_members(const char *dir, struct buf *members, struct err *e)
{
	cleanup_buf struct buf all = {0};

	return all_members(dir, &all, e) || check_living(dir, &all, members, e) ? -1 : 0;
}

/* ---- complaints ---- */

bool job_may_complain(const char *dir)
{
	cleanup_fd int folder = open_folder(dir, NULL);
	struct timespec now;
	struct stat st;
	int fd;

	if (folder < 0)
		return true;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (!fstatat(folder, JOB_VOICE, &st, AT_SYMLINK_NOFOLLOW) &&
		st.st_mtim.tv_sec + COMPLAINT_S < now.tv_sec)
		(void)unlinkat(folder, JOB_VOICE, 0);
	fd = openat(folder, JOB_VOICE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno != EEXIST;
	close(fd);
	return true;
}

/* Which process @m is: told apart from every other that ever ran. */
static char *process_name(const struct job_member *m)
{
	return xasprintf("%s %d %llu\n", m->machine, m->supervisor, m->start_time);
}

void job_note_given_up(const struct job *job)
{
	cleanup_fd int folder = open_folder(job->dir, NULL), fd = -1;
	cleanup_free char *name = process_name(&job->self);

	if (folder < 0)
		return;
	/* Made anew, so that the file system sets its time. If it cannot be, the others
	 * wait for longer. */
	(void)unlinkat(folder, JOB_GIVEN, 0);
	fd = openat(folder, JOB_GIVEN, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)write_all(fd, name, strlen(name), JOB_GIVEN, NULL);
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

bool job_is_given_up(const struct job *job)
{
	cleanup_fd int folder = open_folder(job->dir, NULL);
	struct stat own, given;

	return folder >= 0 && !fstat(job->fd, &own) &&
	       !fstatat(folder, JOB_GIVEN, &given, AT_SYMLINK_NOFOLLOW) &&
	       !is_before(&given.st_mtim, &own.st_mtim);
}

bool job_is_given_up_by(const struct job *job, const struct job_member *m)
{
	cleanup_fd int folder = open_folder(job->dir, NULL);
	cleanup_free char *name = process_name(m), *text = NULL;
	size_t len;

	return folder >= 0 && !read_file_at(folder, JOB_GIVEN, &text, &len, NULL) &&
	       len == strlen(name) && !memcmp(text, name, len);
}
