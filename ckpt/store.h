/*
 * store.h - the directory that holds a job's checkpoints.
 *
 *	DIR/ckpt-000001/	complete checkpoints, never changed
 *	DIR/ckpt-000002.tmp/	one being written; swept away by the next
 *	DIR/latest		symbolic link to the newest
 *	DIR/lock		held (flock) by the supervisor that writes here
 *
 * A checkpoint is complete or absent at every moment: it is written under a temporary name,
 * brought to disk, and renamed.
 */
#ifndef CKPT_STORE_H
#define CKPT_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/image_read.h"
#include "ckpt/members.h"
#include "lib/err.h"
#include "lib/util.h"

struct store;

/* Open @dir for writing, creating it (0700) when it does not exist, and hold it for the
 * supervisor of @job_id. Fails when another one holds it; *held_for (may be NULL) says whether
 * that is of the same job. Sweeps leftovers of unfinished checkpoints. NULL on failure.
 *
 * Leftovers are left alone, as a supervisor may be at work on them, on a file system without
 * locks, and where locks may be each machine's own and a supervisor of another machine has been
 * here. */
struct store *store_open(
	const char *dir, const uint8_t job_id[16], bool *held_for, struct err *e);
void store_close(struct store *s);

/* Whether a supervisor of @job_id holds @dir, which @e then says. */
bool store_is_held_for(const char *dir, const uint8_t job_id[16], struct err *e);
const char *store_dir(const struct store *s);

/* A place for member @rank in the checkpoint of a job, which is being written to @dir (with the
 * suffix of an incomplete one) and has number @sequence: DIR/ckpt-000002.tmp/rank-3.
 * What is committed there is complete as a part; the whole is so when it has its name. Nothing
 * is locked and nothing pruned. NULL on failure. */
struct store *store_open_part(const char *dir, uint64_t sequence, int rank, struct err *e);

/* Start a checkpoint: makes the temporary directory. *dirfd is the caller's to write into but
 * stays the store's to close; *sequence is its number. */
int store_begin(struct store *s, int *dirfd, uint64_t *sequence, struct err *e);
/* Name (ckpt-NNNNNN) that the checkpoint begun will have. */
const char *store_name(const struct store *s);
/* The name that later ones have for it in their chains: for a member's it says in which
 * checkpoint of the job it is, ckpt-NNNNNN/rank-N. */
const char *store_chain_name(const struct store *s);
/* Complete it: sync, rename, move `latest`. *path is its absolute path, the caller's to free.
 */
int store_commit(struct store *s, char **path, struct err *e);
/* Throw it away. */
void store_abort(struct store *s);

/* Remove the oldest complete checkpoints of job @job_id until @keep are left, but none that a
 * kept one needs for its blocks. Failure to remove is no error of the checkpoint's: returns
 * how many were removed, or -1 with @e filled. */
int store_prune(struct store *s, const uint8_t job_id[16], unsigned keep, struct err *e);

/* Remove the one checkpoint @path (a directory) unless another in the same directory needs
 * it: then fails and names that one. For trecr-inspect --prune. */
int store_remove(const char *path, struct err *e);

/*
 * A checkpoint opened for reading: @path is a checkpoint's directory, or a directory of
 * checkpoints (then its `latest`). Refuses directories and files that others could have
 * written. All files are opened and their metadata checked, and the chain's.
 */
struct checkpoint {
	char *path;   /* absolute, of the checkpoint's own directory */
	char *parent; /* absolute, of the directory it is in */
	char *name;
	int dirfd;
	int parentfd; /* names in chains are relative to it: for a member, the job's parent */
	struct image *job;
	const struct image_job *info;
	struct image **processes; /* in the order of IMAGE_NOTE_PROCESSES */
	size_t process_count;
};

/* The process that keeps for number @process what they share: @process itself where they share
 * nothing. */
size_t checkpoint_owner(const struct checkpoint *c, size_t process, enum image_shared what);

/* Whether @path is, or has as its latest, a checkpoint of a job: 1, with its own absolute path
 * in *whole and its members in @m, both the caller's to free; 0 when it is another; -1. */
int checkpoint_members(const char *path, char **whole, struct members *m, struct err *e);

struct checkpoint *checkpoint_open(const char *path, struct err *e);
/* Where @path is a directory of checkpoints: the path of the newest before the latest whose metadata can be read, the
 * caller's to free. NULL: there is none. */
char *checkpoint_older(const char *path);
void checkpoint_close(struct checkpoint *c);

/* Which trecr says that it made the checkpoint @path, which cannot be opened: in any version of
 * the format. */
int checkpoint_maker(const char *path, struct image_maker *m, struct err *e);

/* The descriptors that it is read by: int, appended to @fds. */
void checkpoint_descriptors(const struct checkpoint *c, struct buf *fds);

/* Read all hashes of blocks, its own and those in files of earlier checkpoints: image_hash() does not fail afterwards. */
int checkpoint_need_hashes(const struct checkpoint *c, struct err *e);
/* Compare the hashes of all blocks of all files. */
int checkpoint_verify(const struct checkpoint *c, struct err *e);
/* The same, of what is on the disk, not of what the system has of it in memory. */
int checkpoint_read_back(const struct checkpoint *c, struct err *e);

#endif
