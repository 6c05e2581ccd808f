/*
 * store.c - one directory as its supervisor has it open: begin, commit or abort a checkpoint.
 */
#include "ckpt/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "ckpt/store_dir.h"
#include "ckpt/trust.h"
#include "lib/notices.h"
#include "lib/util.h"

struct store {
	char *dir; /* absolute */
	int fd;
	struct store_lock lock;
	/* of the checkpoint being written; tmp_fd is -1 between checkpoints */
	int tmp_fd;
	uint64_t sequence;
	char name[32], tmp_name[40], chain_name[64];
	bool part; /* of a job's checkpoint */
};

static int open_dir(struct store *s, const char *dir, struct err *e)
{
	bool is_new = !mkdir(dir, 0700);

	if (!is_new && errno != EEXIST)
		return err_set(e, errno, "cannot create %s", dir);
	s->dir = realpath(dir, NULL);
	if (!s->dir)
		return err_set(e, errno, "cannot find %s", dir);
	/* What a checkpoint brings to disk must be found there after a loss of power. */
	if (is_new && sync_directory_of(s->dir, e))
		return -1;
	s->fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0)
		return err_set(e, errno, "cannot open %s", s->dir);
	/* Nothing could be restarted from there. */
	return trust_check_parent(s->fd, s->dir, e);
}

/* Leftovers go, where they are known to be such. */
static int remove_leftovers(struct store *s, struct err *e)
{
	cleanup_free char *reason = NULL;
	int count;

	if (s->lock.works)
		return store_dir_sweep(s->fd, s->dir, e);
	count = store_dir_count_unfinished(s->fd, s->dir, e);
	reason = store_dir_unlocked_reason(&s->lock, s->dir);
	if (count > 0)
		notice_add("%s: unfinished checkpoints (" STORE_PREFIX "*" STORE_TMP
			   ") are left alone there; remove them if no supervisor writes them",
			reason);
	return count < 0 ? -1 : 0;
}

struct store *store_open(
	const char *dir, const uint8_t job_id[16], bool *held_for, struct err *e)
{
	struct store *s = xcalloc(1, sizeof(*s));

	s->fd = s->lock.fd = s->tmp_fd = -1;
	if (open_dir(s, dir, e) < 0 || store_dir_lock(s->fd, s->dir, job_id, &s->lock, e) < 0 ||
		remove_leftovers(s, e) < 0) {
		if (held_for)
			*held_for = s->lock.held_for;
		store_close(s);
		return NULL;
	}
	if (s->lock.taken)
		store_dir_sign(&s->lock, job_id);
	return s;
}

struct store *store_open_part(const char *dir, uint64_t sequence, int rank, struct err *e)
{
	struct store *s = xcalloc(1, sizeof(*s));

	s->fd = s->lock.fd = s->tmp_fd = -1;
	s->part = true;
	s->sequence = sequence;
	snprintf(s->name, sizeof(s->name), STORE_PART "%d", rank);
	snprintf(s->tmp_name, sizeof(s->tmp_name), STORE_PART "%d", rank);
	snprintf(s->chain_name, sizeof(s->chain_name), STORE_NAME "/" STORE_PART "%d", sequence,
		rank);
	s->dir = realpath(dir, NULL);
	if (s->dir)
		s->fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd >= 0)
		return s;
	err_set(e, errno, "cannot open %s", dir);
	store_close(s);
	return NULL;
}

bool store_is_held_for(const char *dir, const uint8_t job_id[16], struct err *e)
{
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct store_lock lock = {.fd = -1};

	/* Where there is none yet, nobody holds it; and none is to be made. */
	if (fd < 0 || faccessat(fd, STORE_LOCK, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	(void)store_dir_lock(fd, dir, job_id, &lock, e);
	util_close(&lock.fd);
	return lock.held_for;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	store_abort(s);
	if (s->lock.taken)
		store_dir_sign_off(&s->lock);
	if (s->lock.fd >= 0)
		close(s->lock.fd);
	if (s->fd >= 0)
		close(s->fd);
	free(s->dir);
	free(s);
}

const char *store_dir(const struct store *s)
{
	return s->dir;
}

const char *store_name(const struct store *s)
{
	return s->name;
}

const char *store_chain_name(const struct store *s)
{
	return s->part ? s->chain_name : s->name;
}

static bool is_taken(const struct store *s)
{
	return !faccessat(s->fd, s->name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* A name of our own. Without a lock others may be choosing, too: a directory can be made once,
 * and may have been made complete since we looked. */
static int make_tmp(struct store *s, uint64_t sequence, struct err *e)
{
	int r;

	for (s->sequence = sequence;; s->sequence++) {
		snprintf(s->name, sizeof(s->name), STORE_NAME, s->sequence);
		snprintf(s->tmp_name, sizeof(s->tmp_name), "%s" STORE_TMP, s->name);
		r = mkdirat(s->fd, s->tmp_name, 0700);
		if (r < 0 && (errno != EEXIST || s->lock.works))
			return err_set(e, errno, "cannot create %s/%s", s->dir, s->tmp_name);
		if (!r && !is_taken(s))
			return 0;
		/* It stays, empty, when this fails: the next one skips it, too. */
		if (!r)
			(void)unlinkat(s->fd, s->tmp_name, AT_REMOVEDIR);
	}
}

static int begin_part(struct store *s, struct err *e)
{
	if (mkdirat(s->fd, s->tmp_name, 0700) < 0)
		return err_set(e, errno, "cannot create %s/%s", s->dir, s->tmp_name);
	return 0;
}

static int begin_whole(struct store *s, struct err *e)
{
	struct store_entries all;
	uint64_t next;

	if (remove_leftovers(s, e) < 0 || store_dir_list(s->fd, s->dir, &all, e) < 0)
		return -1;
	next = all.count ? all.entries[all.count - 1].sequence + 1 : 1;
	store_entries_free(&all);
	return make_tmp(s, next, e);
}

int store_begin(struct store *s, int *dirfd, uint64_t *sequence, struct err *e)
{
	BUG_ON(s->tmp_fd >= 0);
	if (s->part ? begin_part(s, e) : begin_whole(s, e))
		return -1;
	s->tmp_fd = openat(s->fd, s->tmp_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->tmp_fd < 0) {
		err_set(e, errno, "cannot open %s/%s", s->dir, s->tmp_name);
		/* What is left of it, the next checkpoint sweeps away. */
		(void)unlinkat(s->fd, s->tmp_name, AT_REMOVEDIR);
		return -1;
	}
	*dirfd = s->tmp_fd;
	*sequence = s->sequence;
	return 0;
}

/* Bring all files of the directory and the directory itself to disk. */
static int sync_tree(struct store *s, struct err *e)
{
	cleanup_store_dir DIR *d = store_dir_reopen(s->tmp_fd);
	struct dirent *entry;

	if (!d)
		return err_set(e, errno, "cannot read %s/%s", s->dir, s->tmp_name);
	while ((errno = 0, entry = readdir(d))) {
		cleanup_fd int fd = -1;

		if (entry->d_name[0] == '.')
			continue;
		fd = openat(s->tmp_fd, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 || fsync(fd) < 0)
			return err_set(e, errno, "cannot flush %s/%s/%s to disk", s->dir,
				s->tmp_name, entry->d_name);
	}
	if (errno || fsync(s->tmp_fd) < 0)
		return err_set(e, errno, "cannot flush %s/%s to disk", s->dir, s->tmp_name);
	return 0;
}

/* Give the checkpoint its name and point `latest` at it: both or neither. The link is made
 * first, as only that can run out of space. */
static int publish_checkpoint(struct store *s, struct err *e)
{
	if (store_dir_prepare_latest(s->fd, s->dir, s->name, e) < 0)
		return -1;
	if (renameat(s->fd, s->tmp_name, s->fd, s->name) < 0) {
		err_set(e, errno, "cannot rename %s/%s", s->dir, s->tmp_name);
		(void)unlinkat(s->fd, STORE_LATEST_TMP, 0); /* the next one replaces it */
		return -1;
	}
	if (store_dir_move_latest(s->fd, s->dir, e) < 0) {
		/* When this fails too, it stays: complete, but not the latest. */
		(void)renameat(s->fd, s->name, s->fd, s->tmp_name);
		(void)unlinkat(s->fd, STORE_LATEST_TMP, 0);
		return -1;
	}
	if (fsync(s->fd) < 0)
		return err_set(e, errno, "cannot flush %s to disk", s->dir);
	return 0;
}

/* As it is when the whole is complete. */
static char *path_of_part(const struct store *s)
{
	size_t length = strlen(s->dir) - strlen(STORE_TMP);

	return xasprintf("%.*s/%s", (int)length, s->dir, s->name);
}

int store_commit(struct store *s, char **path, struct err *e)
{
	BUG_ON(s->tmp_fd < 0);
	if (sync_tree(s, e) < 0)
		return -1;
	if (s->part ? fsync(s->fd) < 0 && err_set(e, errno, "cannot flush %s to disk", s->dir)
		    : publish_checkpoint(s, e) < 0)
		return -1;
	close(s->tmp_fd);
	s->tmp_fd = -1;
	*path = s->part ? path_of_part(s) : xasprintf("%s/%s", s->dir, s->name);
	return 0;
}

void store_abort(struct store *s)
{
	if (s->tmp_fd < 0)
		return;
	close(s->tmp_fd);
	s->tmp_fd = -1;
	/* What cannot be removed now, the next checkpoint tries again and reports. */
	(void)store_dir_remove(s->fd, s->dir, s->tmp_name, NULL);
}

int store_prune(struct store *s, const uint8_t job_id[16], unsigned keep, struct err *e)
{
	if (s->part)
		return 0;
	/* What could not be removed the last time. */
	if (s->tmp_fd < 0 && remove_leftovers(s, e) < 0)
		return -1;
	return store_dir_prune(s->fd, s->dir, job_id, keep, e);
}
