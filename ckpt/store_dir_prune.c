/*
 * store_dir_prune.c - which checkpoints may go. Every file of a checkpoint names, in its chain,
 * the other checkpoints whose files hold blocks of it. What stays must be complete: so what a
 * checkpoint that stays needs, stays, with all that it needs itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/image_read.h"
#include "ckpt/members.h"
#include "ckpt/store.h"
#include "ckpt/store_dir.h"
#include "lib/notices.h"
#include "lib/util.h"

/* What pruning must know of a checkpoint. */
struct facts {
	uint8_t job_id[16];
	struct buf needs; /* size_t: indices of other checkpoints in the directory */
	bool stays;
};

struct survey {
	struct store_entries all;
	struct facts *facts; /* of each of all */
};

static void survey_free(struct survey *s)
{
	for (size_t i = 0; s->facts && i < s->all.count; i++)
		buf_free(&s->facts[i].needs);
	free(s->facts);
	store_entries_free(&s->all);
}

/* Whether @link, of a chain, leads to the checkpoint @name, or to a member's in it. */
static bool leads_to(const char *link, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(link, name, length) && (!link[length] || link[length] == '/');
}

static void add_needs(struct survey *s, size_t index, const struct image *img)
{
	const struct image_chain *chain;
	size_t count;

	chain = image_note_array(img, IMAGE_NOTE_CHAIN, struct image_chain, &count);
	for (size_t i = 1; i < count; i++)
		for (size_t other = 0; other < s->all.count; other++)
			if (leads_to(image_string(img, chain[i].name),
				    s->all.entries[other].name))
				buf_push(&s->facts[index].needs, size_t, &other);
}

static int look_at_file(struct survey *s, size_t index, int fd, const char *file,
	const char *path, struct err *e)
{
	bool is_job = !strcmp(file, IMAGE_JOB_FILE);
	const struct image_job *job;
	struct image *img;
	size_t count;

	img = image_open(fd, file, path, is_job ? IMAGE_FILE_JOB : IMAGE_FILE_PROCESS, e);
	if (!img)
		return -1;
	job = image_note_array(img, IMAGE_NOTE_JOB, struct image_job, &count);
	if (job)
		memcpy(s->facts[index].job_id, job->job_id, sizeof(job->job_id));
	add_needs(s, index, img);
	image_close(img);
	return 0;
}

/* The job file of a member has the whole chain in it: files of its processes need no more. */
static int look_at_member(
	struct survey *s, size_t index, int fd, size_t rank, const char *dir, struct err *e)
{
	cleanup_free char *file = xasprintf(STORE_PART "%zu/" IMAGE_JOB_FILE, rank);
	cleanup_free char *path = xasprintf("%s/%s/%s", dir, s->all.entries[index].name, file);
	struct image *img = image_open(fd, file, path, IMAGE_FILE_JOB, e);

	if (!img)
		return -1;
	add_needs(s, index, img);
	image_close(img);
	return 0;
}

static int look_at_members(
	struct survey *s, size_t index, int fd, const char *dir, struct err *e)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, s->all.entries[index].name);
	struct members m;
	int failed = 0;

	if (members_read(fd, &m, path, e))
		return -1;
	memcpy(s->facts[index].job_id, m.job_id, sizeof(m.job_id));
	for (size_t rank = 0; rank < m.count && !failed; rank++)
		failed = look_at_member(s, index, fd, rank, dir, e);
	members_free(&m);
	return failed;
}

static int survey_checkpoint(
	struct survey *s, size_t index, int fd, const char *dir, struct err *e)
{
	const char *name = s->all.entries[index].name;
	cleanup_fd int sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	cleanup_store_dir DIR *d = sub < 0 ? NULL : store_dir_reopen(sub);
	struct dirent *entry;

	if (!d)
		return err_set(e, errno, "cannot open %s/%s", dir, name);
	if (members_present(sub))
		return look_at_members(s, index, sub, dir, e);
	while ((errno = 0, entry = readdir(d))) {
		cleanup_free char *path = NULL;

		if (entry->d_name[0] == '.' || image_is_blocks_file(entry->d_name))
			continue;
		path = xasprintf("%s/%s/%s", dir, name, entry->d_name);
		if (look_at_file(s, index, sub, entry->d_name, path, e) < 0)
			return -1;
	}
	return errno ? err_set(e, errno, "cannot read %s/%s", dir, name) : 0;
}

/* Look at all checkpoints of the directory but @but (NULL: none left out). A checkpoint that
 * cannot be read is an error: it might need any other. */
static int survey_checkpoints(
	struct survey *s, int fd, const char *dir, const char *but, struct err *e)
{
	if (store_dir_list(fd, dir, &s->all, e) < 0)
		return -1;
	s->facts = xcalloc(s->all.count, sizeof(*s->facts));
	for (size_t i = 0; i < s->all.count; i++) {
		if (but && !strcmp(s->all.entries[i].name, but))
			continue;
		if (survey_checkpoint(s, i, fd, dir, e) < 0)
			return err_prefix(e, "cannot tell which checkpoints are needed");
	}
	return 0;
}

/* Mark what the checkpoints that stay need, until nothing new is found. */
static void spread_stays(struct survey *s)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < s->all.count; i++) {
			const struct buf *needs = &s->facts[i].needs;

			for (size_t n = 0; s->facts[i].stays && n < buf_count(needs, size_t);
				n++) {
				struct facts *other = &s->facts[*buf_at(needs, size_t, n)];

				changed |= !other->stays;
				other->stays = true;
			}
		}
	}
}

static bool is_latest(int fd, const char *name)
{
	char target[64];
	ssize_t n = readlinkat(fd, STORE_LATEST, target, sizeof(target));

	return n > 0 && (size_t)n == strlen(name) && !memcmp(target, name, n);
}

static bool is_of_job(const struct survey *s, size_t i, const uint8_t job_id[16])
{
	return !memcmp(s->facts[i].job_id, job_id, sizeof(s->facts[i].job_id));
}

static void choose_stays(struct survey *s, int fd, const uint8_t job_id[16], unsigned keep)
{
	for (size_t i = s->all.count; i-- > 0;) {
		struct facts *f = &s->facts[i];
		bool other_job = !is_of_job(s, i, job_id);

		f->stays = other_job || keep || is_latest(fd, s->all.entries[i].name);
		if (!other_job && keep)
			keep--;
	}
	spread_stays(s);
}

/* When the first one too many stays, not with each that follows. */
static void tell_of_more(
	const struct survey *s, const char *dir, const uint8_t job_id[16], unsigned keep)
{
	size_t stay = 0;

	for (size_t i = 0; i < s->all.count; i++)
		stay += is_of_job(s, i, job_id) && s->facts[i].stays;
	if (stay == keep + 1ull)
		notice_add("%s: more than %u checkpoint%s are kept, because incremental ones "
			   "need earlier ones (--full-every)",
			dir, keep, keep == 1 ? "" : "s");
}

/* Whether there are so few checkpoints that all stay: to look at them takes time, as the index of
 * each is read. */
static int all_stay(int fd, const char *dir, unsigned keep, struct err *e)
{
	struct store_entries all = {0};
	int r = store_dir_list(fd, dir, &all, e) < 0 ? -1 : all.count <= keep;

	store_entries_free(&all);
	return r;
}

int store_dir_prune(
	int fd, const char *dir, const uint8_t job_id[16], unsigned keep, struct err *e)
{
	struct survey s = {0};
	int removed = 0, stay = all_stay(fd, dir, keep, e);

	if (stay)
		return stay < 0 ? -1 : 0;
	if (survey_checkpoints(&s, fd, dir, NULL, e) < 0) {
		survey_free(&s);
		return -1;
	}
	choose_stays(&s, fd, job_id, keep);
	tell_of_more(&s, dir, job_id, keep);
	/* The newest first: should we end in between, all that is left is complete. */
	for (size_t i = s.all.count; i-- > 0 && removed >= 0;) {
		if (s.facts[i].stays)
			continue;
		if (store_dir_remove(fd, dir, s.all.entries[i].name, e) < 0)
			removed = -1;
		else
			removed++;
	}
	survey_free(&s);
	return removed;
}

/* Fails when a checkpoint of the directory needs @name, or it is not there. */
static int check_unneeded(
	const struct survey *s, const char *dir, const char *name, struct err *e)
{
	size_t target = 0;

	while (target < s->all.count && strcmp(s->all.entries[target].name, name))
		target++;
	if (target == s->all.count)
		return err_set(e, 0, "cannot remove %s/%s: it is not a checkpoint", dir, name);
	for (size_t i = 0; i < s->all.count; i++) {
		const struct buf *needs = &s->facts[i].needs;

		for (size_t n = 0; n < buf_count(needs, size_t); n++)
			if (i != target && *buf_at(needs, size_t, n) == target)
				return err_set(e, 0, "cannot remove %s/%s: %s needs it", dir,
					name, s->all.entries[i].name);
	}
	return 0;
}

/* Point `latest` at the newest checkpoint but @name, or remove it when there is none. */
static int leave_latest(
	const struct survey *s, int fd, const char *dir, const char *name, struct err *e)
{
	size_t i = s->all.count;

	while (i > 0 && !strcmp(s->all.entries[i - 1].name, name))
		i--;
	if (!i) {
		if (unlinkat(fd, STORE_LATEST, 0) < 0 && errno != ENOENT)
			return err_set(e, errno, "cannot remove %s/" STORE_LATEST, dir);
		return 0;
	}
	if (store_dir_prepare_latest(fd, dir, s->all.entries[i - 1].name, e) < 0)
		return -1;
	return store_dir_move_latest(fd, dir, e);
}

static int remove_one(int fd, const char *dir, const char *name, struct err *e)
{
	struct survey s = {0};
	int r = -1;

	if (survey_checkpoints(&s, fd, dir, name, e) < 0 ||
		check_unneeded(&s, dir, name, e) < 0)
		goto out;
	if (is_latest(fd, name) && leave_latest(&s, fd, dir, name, e) < 0)
		goto out;
	r = store_dir_remove(fd, dir, name, e);
out:
	survey_free(&s);
	return r;
}

/* A supervisor at work here may be about to refer to any of the checkpoints. */
static int lock_store(int fd, const char *dir, struct store_lock *lock, struct err *e)
{
	static const uint8_t no_job[16];
	cleanup_free char *reason = NULL;
	int unfinished;

	if (store_dir_lock(fd, dir, no_job, lock, e) < 0)
		return -1;
	if (lock->works)
		return 0;
	unfinished = store_dir_count_unfinished(fd, dir, e);
	reason = store_dir_unlocked_reason(lock, dir);
	if (unfinished > 0)
		err_set(e, 0,
			"cannot tell whether a supervisor is at work: %s: remove its "
			"unfinished "
			"checkpoints (" STORE_PREFIX "*" STORE_TMP ") if none is",
			reason);
	return unfinished ? -1 : 0;
}

int store_remove(const char *path, struct err *e)
{
	cleanup_free char *full = realpath(path, NULL);
	struct store_lock lock = {.fd = -1};
	cleanup_fd int fd = -1;
	char *slash;
	int r;

	if (!full)
		return err_set(e, errno, "cannot remove %s", path);
	slash = strrchr(full, '/');
	*slash = 0;
	fd = open(*full ? full : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, errno, "cannot open %s", full);
	r = lock_store(fd, full, &lock, e);
	if (!r)
		r = remove_one(fd, full, slash + 1, e);
	util_close(&lock.fd);
	return r;
}
