#include "supervisor/job/members.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "ckpt/trust.h"

#define JOB_FOLDER "ranks"
#define JOB_TURN   "turn"

/* How long the members of a restart may come one after the other. */
#define GATHER_NS 60000000000ull
#define TICK_NS   20000000

static void tick(void)
{
	static const struct timespec moment = {.tv_nsec = TICK_NS};

	/* Woken early: all the same. */
	(void)nanosleep(&moment, NULL);
}

static char *host_name(void)
{
	struct utsname host;

	/* Fails for a bad address only. */
	(void)uname(&host);
	return xstrdup(host.nodename);
}

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
	cleanup_free char *path = xasprintf("%s/" JOB_FOLDER, dir);

	if ((mkdir(dir, 0700) < 0 && errno != EEXIST) ||
		(mkdir(path, 0700) < 0 && errno != EEXIST))
		return err_set(e, errno, "cannot create %s", path);
	return open_folder(dir, e);
}

/* Somebody who only looks holds a lock for a moment, too. */
static int lock_file(int fd, int how, uint64_t deadline_ns)
{
	while (flock(fd, how | LOCK_NB)) {
		if (errno != EWOULDBLOCK)
			return errno;
		if (deadline_ns && clock_ns(CLOCK_MONOTONIC) > deadline_ns)
			return EWOULDBLOCK;
		tick();
	}
	return 0;
}

static int parse(const char *text, struct job_member *m)
{
	*m = (struct job_member){0};
	return sscanf(text, "member %d %d %d %64s %u %39s", &m->rank, &m->size, &m->supervisor,
		       m->host, &m->keep, m->from) == 6 &&
			       m->rank >= 0 && m->size > 1 && m->size <= JOB_SIZE_MAX
		       ? 0
		       : -1;
}

static int read_member(int fd, struct job_member *m)
{
	char text[256] = "";

	return pread(fd, text, sizeof(text) - 1, 0) < 0 ? -1 : parse(text, m);
}

static int refuse(int fd, const char *dir, int rank, struct err *e)
{
	struct job_member m;

	if (read_member(fd, &m) < 0)
		return err_set(e, 0, "rank %d of a job in %s is running already", rank, dir);
	return err_set(e, 0,
		"rank %d of the job in %s is running already (supervisor %d on %s); another "
		"job "
		"takes a directory of its own",
		rank, dir, m.supervisor, m.host);
}

static int sign(const struct job *job, unsigned keep, const char *from, struct err *e)
{
	cleanup_free char *host = host_name();
	cleanup_free char *text = xasprintf("member %d %d %d %s %u %s\n", job->rank, job->size,
		getpid(), host, keep, from ? from : "-");
	cleanup_free char *what = xasprintf("%s/" JOB_FOLDER "/%d", job->dir, job->rank);

	if (ftruncate(job->fd, 0) < 0)
		return err_set(e, errno, "cannot write %s", what);
	return pwrite_all(job->fd, text, strlen(text), 0, what, e);
}

static int join(struct job *job, struct err *e)
{
	cleanup_fd int folder = make_folder(job->dir, e);
	char name[16];
	int r;

	if (folder < 0)
		return -1;
	snprintf(name, sizeof(name), "%d", job->rank);
	job->fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (job->fd < 0)
		return err_set(e, errno, "cannot create %s/" JOB_FOLDER "/%s", job->dir, name);
	r = lock_file(job->fd, LOCK_EX, clock_ns(CLOCK_MONOTONIC) + 1000000000);
	if (r == EWOULDBLOCK)
		return refuse(job->fd, job->dir, job->rank, e);
	if (r)
		return err_set(e, r, "a job cannot be in %s, whose file system has no locks",
			job->dir);
	return 0;
}

static void leave_job(struct job *job)
{
	util_close(&job->fd);
	free(job->dir);
	free(job);
}

struct job *job_join(
	const char *dir, int rank, int size, unsigned keep, const char *from, struct err *e)
{
	struct job *job = xcalloc(1, sizeof(*job));

	*job = (struct job){.dir = xstrdup(dir), .rank = rank, .size = size, .fd = -1};
	if (size > JOB_SIZE_MAX)
		err_set(e, 0, "a job of %d ranks is too large: %d at most", size, JOB_SIZE_MAX);
	else if (!join(job, e) && !sign(job, keep, from, e))
		return job;
	leave_job(job);
	return NULL;
}

/* Without a lock on it, its supervisor has ended. */
static int look_at(int folder, int rank, struct job_member *m)
{
	cleanup_fd int fd = -1;
	char name[16];

	snprintf(name, sizeof(name), "%d", rank);
	fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || read_member(fd, m) < 0 || m->rank != rank)
		return -1;
	m->alive = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	return 0;
}

/* All members that @dir knows of, struct job_member by rank; also those that have ended. None
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

		if (look_at(folder, rank, &m) < 0) {
			if (rank >= size)
				break;
			continue;
		}
		if (m.alive || m.size > size)
			size = m.size > size ? m.size : size;
		buf_push(members, struct job_member, &m);
	}
	return 0;
}

/* The number of members that the living ones tell of; 0: none lives. */
static int size_of(const struct buf *members)
{
	for (size_t i = 0; i < buf_count(members, struct job_member); i++)
		if (buf_at(members, struct job_member, i)->alive)
			return buf_at(members, struct job_member, i)->size;
	return 0;
}

static const struct job_member *member_of(const struct buf *members, int rank)
{
	for (size_t i = 0; i < buf_count(members, struct job_member); i++) {
		const struct job_member *m = buf_at(members, struct job_member, i);

		if (m->rank == rank && m->alive)
			return m;
	}
	return NULL;
}

static int check_living(
	const char *dir, const struct buf *all, struct buf *living, struct err *e)
{
	cleanup_free char *here = host_name();
	int size = size_of(all);

	if (!size)
		return err_set(e, 0, "there is no running job in %s", dir);
	for (int rank = 0; rank < size; rank++) {
		const struct job_member *m = member_of(all, rank);

		if (!m)
			return err_set(e, 0,
				"rank %d of the %d ranks of the job in %s is not there: it has "
				"ended, or not started, or has another directory (all have the "
				"same, or each its own with --alone)",
				rank, size, dir);
		if (m->size != size)
			return err_set(e, 0,
				"ranks of two jobs are in %s: one of %d and one of %d ranks",
				dir, size, m->size);
		if (strcmp(m->host, here))
			return err_set(e, 0,
				"rank %d runs on %s: jobs of several machines cannot be saved "
				"yet",
				rank, m->host);
		buf_push(living, struct job_member, m);
	}
	return 0;
}

int job_living_members(const char *dir, struct buf *members, struct err *e)
{
	cleanup_buf struct buf all = {0};

	return all_members(dir, &all, e) || check_living(dir, &all, members, e) ? -1 : 0;
}

static int compare_origins(const struct buf *members, const char *from, struct err *e)
{
	for (size_t i = 0; i < buf_count(members, struct job_member); i++) {
		const struct job_member *m = buf_at(members, struct job_member, i);

		if (strcmp(m->from, from))
			return err_set(e, 0,
				"ranks are of different checkpoints: %d of %s, %d of %s",
				buf_at(members, struct job_member, 0)->rank,
				buf_at(members, struct job_member, 0)->from, m->rank, m->from);
	}
	return 0;
}

int job_await_members(const struct job *job, const char *from, struct err *e)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + GATHER_NS;

	for (;;) {
		cleanup_buf struct buf members = {0};

		if (!job_living_members(job->dir, &members, e))
			return compare_origins(&members, from, e);
		if (clock_ns(CLOCK_MONOTONIC) > deadline)
			return err_prefix(e, "not all ranks have come to the restart");
		tick();
	}
}

int job_take_turn(const char *dir, uint64_t deadline_ns, struct err *e)
{
	cleanup_fd int folder = open_folder(dir, e), fd = -1;
	int r;

	if (folder < 0)
		return -1;
	fd = openat(folder, JOB_TURN, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(e, errno, "cannot create %s/" JOB_FOLDER "/" JOB_TURN, dir);
	r = lock_file(fd, LOCK_EX, deadline_ns);
	if (r)
		return err_set(e, 0, "another checkpoint of the job in %s is being taken", dir);
	return steal_fd(&fd);
}
