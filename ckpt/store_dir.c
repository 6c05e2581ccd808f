/*
 * store_dir.c - the lock and its owner's signature, names and order of checkpoints, removal, and
 * the link to the newest.
 */
#include "ckpt/store_dir.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ckpt/lock_reach.h"
#include "lib/util.h"

void store_dir_close(DIR **d)
{
	if (*d)
		closedir(*d);
}

DIR *store_dir_reopen(int fd)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again < 0 ? NULL : fdopendir(again);

	if (!d && again >= 0)
		close(again);
	return d;
}

/* The lock's contents say who holds it: "supervisor PID HOST JOB BOOT". */
#define JOB_DIGITS 32

struct signature {
	int pid;
	char host[65], job[JOB_DIGITS + 1], boot[37];
};

static void job_text(char *text, const uint8_t job_id[16])
{
	for (size_t i = 0; i < JOB_DIGITS / 2; i++)
		snprintf(text + 2 * i, 3, "%02x", job_id[i]);
}

static void our_signature(struct signature *s)
{
	cleanup_free char *boot = NULL;
	struct utsname host;
	size_t len;

	/* Fails for a bad address only. */
	(void)uname(&host);
	*s = (struct signature){.pid = getpid(), .boot = "-"};
	snprintf(s->host, sizeof(s->host), "%s", host.nodename);
	if (!read_file("/proc/sys/kernel/random/boot_id", &boot, &len, NULL))
		(void)sscanf(boot, "%36s", s->boot); /* "-" stays where nothing is in it */
}

static bool read_signature(int lock, struct signature *s)
{
	char text[256] = "";

	*s = (struct signature){0};
	return pread(lock, text, sizeof(text) - 1, 0) > 0 &&
	       sscanf(text, "supervisor %d %64s %32s %36s", &s->pid, s->host, s->job,
		       s->boot) >= 3;
}

void store_dir_sign(const struct store_lock *lock, const uint8_t job_id[16])
{
	cleanup_free char *text = NULL;
	struct signature s;

	our_signature(&s);
	job_text(s.job, job_id);
	text = xasprintf("supervisor %d %s %s %s\n", s.pid, s.host, s.job, s.boot);
	/* Without it, others are told less. */
	if (ftruncate(lock->fd, 0) || pwrite(lock->fd, text, strlen(text), 0) < 0)
		return;
}

void store_dir_sign_off(const struct store_lock *lock)
{
	/* Else it looks as if it had been killed. */
	(void)!ftruncate(lock->fd, 0);
}

/* Who else holds @lock. */
static int refuse_store(int lock, const char *dir, const uint8_t job_id[16],
	struct store_lock *result, struct err *e)
{
	char job[JOB_DIGITS + 1];
	struct signature s;

	/* Nothing to be read is nothing known. */
	if (!read_signature(lock, &s))
		return err_set(e, 0, "%s is in use by a supervisor", dir);
	job_text(job, job_id);
	result->held_for = !strcmp(job, s.job);
	return err_set(
		e, 0, "%s is in use by a supervisor (process %d on %s)", dir, s.pid, s.host);
}

/* A supervisor of another machine has not signed off, and its lock may not reach us: nothing
 * here tells whether it lives. What has run on this machine has ended, or its lock is seen. */
static void look_for_other(int fd, struct store_lock *lock)
{
	struct signature its, ours;

	our_signature(&ours);
	if (!read_signature(lock->fd, &its) || !strcmp(its.host, ours.host) ||
		!strcmp(its.boot, ours.boot) || lock_reaches_all(fd))
		return;
	lock->works = false;
	snprintf(lock->other, sizeof(lock->other), "process %d on %s", its.pid, its.host);
}

char *store_dir_unlocked_reason(const struct store_lock *lock, const char *dir)
{
	return lock->other[0]
		       ? xasprintf("%s has been used by a supervisor (%s) that may still be "
				   "running: locks (flock) of this file system may be local to "
				   "each machine",
				 dir, lock->other)
		       : xasprintf("%s is on a file system that has no locks (flock)", dir);
}

int store_dir_lock(int fd, const char *dir, const uint8_t job_id[16], struct store_lock *lock,
	struct err *e)
{
	cleanup_fd int file =
		openat(fd, STORE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	*lock = (struct store_lock){.fd = -1};
	if (file < 0)
		return err_set(e, errno, "cannot create %s/" STORE_LOCK, dir);
	lock->works = !flock(file, LOCK_EX | LOCK_NB);
	if (!lock->works && errno == EWOULDBLOCK)
		return refuse_store(file, dir, job_id, lock, e);
	lock->taken = lock->works;
	lock->fd = steal_fd(&file);
	/* Some file systems of clusters have no locks: see what is done without. */
	if (lock->works)
		look_for_other(fd, lock);
	return 0;
}

/* Whether @name is a checkpoint's name, with @suffix behind the number. Such a name has at
 * most 28 characters. */
static bool parse_name(const char *name, const char *suffix, uint64_t *sequence)
{
	const char *digits = name + strlen(STORE_PREFIX);
	char *end;

	if (strncmp(name, STORE_PREFIX, strlen(STORE_PREFIX)) || !isdigit(digits[0]))
		return false;
	errno = 0;
	*sequence = strtoull(digits, &end, 10);
	return !errno && end - digits >= 6 && end - digits < 19 && !strcmp(end, suffix);
}

static int compare_entries(const void *left, const void *right)
{
	const struct store_entry *a = left, *b = right;

	return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static int list_entries(
	int fd, const char *dir, const char *suffix, struct store_entries *all, struct err *e)
{
	cleanup_store_dir DIR *d = store_dir_reopen(fd);
	cleanup_buf struct buf found = {0};
	struct dirent *entry;

	if (!d)
		return err_set(e, errno, "cannot read %s", dir);
	while ((errno = 0, entry = readdir(d))) {
		struct store_entry this = {0};

		if (!parse_name(entry->d_name, suffix, &this.sequence))
			continue;
		memcpy(this.name, entry->d_name, strlen(entry->d_name) + 1);
		buf_push(&found, struct store_entry, &this);
	}
	if (errno)
		return err_set(e, errno, "cannot read %s", dir);
	all->count = buf_count(&found, struct store_entry);
	all->entries = steal_ptr(found.data);
	if (all->count)
		qsort(all->entries, all->count, sizeof(*all->entries), compare_entries);
	return 0;
}

int store_dir_list(int fd, const char *dir, struct store_entries *all, struct err *e)
{
	return list_entries(fd, dir, "", all, e);
}

void store_entries_free(struct store_entries *all)
{
	free(all->entries);
	all->entries = NULL;
	all->count = 0;
}

/* A checkpoint of a job has a folder for each member (store.h). */
static int remove_files(int fd, const char *dir, const char *name, struct err *e);

static int remove_entry(int fd, const char *dir, const char *name, struct err *e)
{
	if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno == EISDIR && !strncmp(name, STORE_PART, strlen(STORE_PART)))
		return remove_files(fd, dir, name, e);
	return err_set(e, errno, "cannot remove %s/%s", dir, name);
}

static int remove_files(int fd, const char *dir, const char *name, struct err *e)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name);
	cleanup_fd int sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	cleanup_store_dir DIR *d = sub < 0 ? NULL : store_dir_reopen(sub);
	struct dirent *entry;

	if (!d)
		return errno == ENOENT ? 0 : err_set(e, errno, "cannot open %s/%s", dir, name);
	while ((errno = 0, entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (remove_entry(sub, path, entry->d_name, e) < 0)
			return -1;
	}
	if (errno)
		return err_set(e, errno, "cannot read %s/%s", dir, name);
	if (unlinkat(fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_set(e, errno, "cannot remove %s/%s", dir, name);
	return 0;
}

int store_dir_remove(int fd, const char *dir, const char *name, struct err *e)
{
	cleanup_free char *tmp = NULL;
	uint64_t sequence;

	if (parse_name(name, STORE_TMP, &sequence))
		return remove_files(fd, dir, name, e);
	tmp = xasprintf("%s" STORE_TMP, name);
	if (renameat(fd, name, fd, tmp) < 0 && errno != ENOENT)
		return err_set(e, errno, "cannot remove %s/%s", dir, name);
	return remove_files(fd, dir, tmp, e);
}

int store_dir_sweep(int fd, const char *dir, struct err *e)
{
	struct store_entries all;
	int r = 0;

	if (list_entries(fd, dir, STORE_TMP, &all, e) < 0)
		return -1;
	for (size_t i = 0; i < all.count && !r; i++)
		r = remove_files(fd, dir, all.entries[i].name, e);
	store_entries_free(&all);
	return r;
}

int store_dir_count_unfinished(int fd, const char *dir, struct err *e)
{
	struct store_entries all;
	int count;

	if (list_entries(fd, dir, STORE_TMP, &all, e) < 0)
		return -1;
	count = all.count;
	store_entries_free(&all);
	return count;
}

int store_dir_prepare_latest(int fd, const char *dir, const char *name, struct err *e)
{
	if (unlinkat(fd, STORE_LATEST_TMP, 0) < 0 && errno != ENOENT)
		return err_set(e, errno, "cannot remove %s/" STORE_LATEST_TMP, dir);
	if (symlinkat(name, fd, STORE_LATEST_TMP) < 0)
		return err_set(e, errno, "cannot create %s/" STORE_LATEST_TMP, dir);
	return 0;
}

int store_dir_move_latest(int fd, const char *dir, struct err *e)
{
	if (renameat(fd, STORE_LATEST_TMP, fd, STORE_LATEST) < 0)
		return err_set(e, errno, "cannot replace %s/" STORE_LATEST, dir);
	return 0;
}
