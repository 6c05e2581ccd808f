/*
 * store_dir.h - what is done to a directory of checkpoints: listing, locking, removing. For
 * store.c, which writes there, and store_dir_prune.c. @dir is the directory's name in messages.
 */
#ifndef CKPT_STORE_DIR_H
#define CKPT_STORE_DIR_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

#define STORE_PREFIX     "ckpt-"
#define STORE_NAME       STORE_PREFIX "%06" PRIu64 /* with its number */
#define STORE_TMP        ".tmp"
#define STORE_LATEST     "latest"
#define STORE_LATEST_TMP "latest.tmp"
#define STORE_LOCK       "lock"
#define STORE_PART       "rank-"

#define cleanup_store_dir __attribute__((cleanup(store_dir_close)))
void store_dir_close(DIR **d);

/* A stream of the directory @fd from its start, which leaves @fd as it is. NULL and errno. */
DIR *store_dir_reopen(int fd);

/* What holds the directory against other supervisors. */
struct store_lock {
	int fd;     /* to be closed in the end; -1: not held */
	bool works; /* false: others may be at work here, as this file system has no locks, */
	char other[96]; /* or as this one may be: "process 4711 on node3" */
	bool taken;     /* as far as this machine goes */
	bool held_for;  /* it is not held, as another supervisor of the same job holds it */
};

/* Fails when a supervisor holds it; whether that is one of @job_id, *lock says then. */
int store_dir_lock(int fd, const char *dir, const uint8_t job_id[16], struct store_lock *lock,
	struct err *e);

/* Say in the lock that it is held for @job_id; or no more. */
void store_dir_sign(const struct store_lock *lock, const uint8_t job_id[16]);
void store_dir_sign_off(const struct store_lock *lock);

/* Why others may be at work where lock->works is false, as the beginning of a sentence. The
 * caller's to free. */
char *store_dir_unlocked_reason(const struct store_lock *lock, const char *dir);

/* Remove what unfinished checkpoints left. Only the holder of the directory's lock knows that
 * they are not being written. */
int store_dir_sweep(int fd, const char *dir, struct err *e);

/* How many of them there are, or are being written; -1 on failure. */
int store_dir_count_unfinished(int fd, const char *dir, struct err *e);

/* Complete checkpoints, by number. */
struct store_entries {
	struct store_entry {
		uint64_t sequence;
		char name[32];
	} * entries;
	size_t count;
};

int store_dir_list(int fd, const char *dir, struct store_entries *all, struct err *e);
void store_entries_free(struct store_entries *all);

/* Remove the checkpoint @name with its files. A complete one first loses its name, so that a
 * crash leaves no half of it. No error when it is not there. */
int store_dir_remove(int fd, const char *dir, const char *name, struct err *e);

/* Make the link that store_dir_move_latest() then puts in the place of `latest`. */
int store_dir_prepare_latest(int fd, const char *dir, const char *name, struct err *e);
int store_dir_move_latest(int fd, const char *dir, struct err *e);

/* store_prune() of store.h. */
int store_dir_prune(
	int fd, const char *dir, const uint8_t job_id[16], unsigned keep, struct err *e);

#endif
