/*
 * sysv_kinds.h - the kinds of System V objects: segments of shared memory, sets of semaphores,
 * message queues. All that differs from kind to kind is in its row.
 *
 * How to add a kind: its row and its functions are a file of their own (sysv_shm.c, sysv_sem.c,
 * sysv_msg.c), which sysv_kinds.c lists; and it is an object of the image (enum
 * image_object_kind; supervisor/fd/object_kinds.h).
 */
#ifndef SUPERVISOR_SYSV_SYSV_KINDS_H
#define SUPERVISOR_SYSV_SYSV_KINDS_H

#include <sys/ipc.h>

#include "ckpt/image.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/sysv/sysv_query.h"

/* What is found at a restart under an id of the image. */
struct sysv_found {
	key_t key;
	uint64_t size;    /* as image_object.size; another one where it is not comparable */
	bool used_by_now; /* by processes that are alive */
	bool ever_used;
};

/* An error leaves @e filled with the reason only, without the object's name. */
struct sysv_kind {
	enum image_object_kind kind;
	const char *what;    /* "System V semaphores", for messages */
	const char *next_id; /* the file by which an id is chosen (CHECKPOINT_RESTORE) */
	long get, set;       /* system calls that make one and set its mode, for messages */
	int stat;            /* the command that asks by index: SHM_STAT, */
	int stat_any;        /* and the one for which its mode does not count: SHM_STAT_ANY */
	bool has_undo;       /* a process's end may change one (SEM_UNDO) */

	/* ---- checkpoint ---- */

	/* *highest: the highest index in use; with none in use it is 0; negative: this kernel has
	 * none. -1 when the call could not be made. */
	int (*highest)(struct sysv_asker *a, int64_t *highest, struct err *e);

	/* @call is IPC_STAT of the id @which, or @stat of the index. -1 when the call could not be
	 * made, else 0 or why the kernel does not tell (errno). */
	int (*ask)(struct sysv_asker *a, int call, int which, struct sysv_status *s,
		struct err *e);

	/* Optional: whether system call @nr names one by its first argument, and may wait. */
	bool (*waits_at)(long nr);

	/* Optional: whether @s, which no memory of the program's shows, is a lower half's, and not saved. */
	bool (*is_left_out)(
		const struct fd_dump *d, const struct tree *tree, const struct sysv_status *s);

	/* Take its contents into @o->bytes. */
	int (*copy)(struct sysv_asker *a, struct fd_object *o, const struct sysv_status *s,
		struct err *e);

	/* Optional, of an object that was found by mappings: 1: it is to be copied, with @s of
	 * NULL; 0: a mapping shows it whole, or it has been copied; -1 with the whole error. */
	int (*is_unfinished)(const struct fd_object *o, struct err *e);

	/* ---- restart ---- */

	/* Optional: whether what the image says of it cannot be. */
	bool (*is_damaged)(const struct image_object *o);

	/* -1 and errno: there is none, or none to be looked at. */
	int (*look)(const struct image_object *o, struct sysv_found *found);

	/* The id of the one with @key; -1 and errno. */
	int (*find)(key_t key);

	/* A new one, for us to use: its id; -1 and errno. */
	int (*make)(const struct image_object *o);

	/* Optional: why it could not be made, where the kind of object tells more than errno does;
	 * else NULL. */
	const char *(*why_not_made)(const struct image_object *o);

	/* Of one that is still there: see sysv_let_in(). */
	int (*let_in)(int id);

	/* Contents, owner and mode. */
	int (*fill)(struct fd_restore *r, uint32_t number, const struct image_object *o,
		struct err *e);

	/* What is not there any more, or not yet, needs no removing. */
	void (*remove)(int id);
};

extern const struct sysv_kind sysv_shm, sysv_sem, sysv_msg;

#define SYSV_KINDS 3
extern const struct sysv_kind *const sysv_kinds[SYSV_KINDS];

/* NULL: an object of another kind. */
const struct sysv_kind *sysv_kind_of(uint32_t kind);

/* ---- for the rows ---- */

/* How a new one is made: its id is chosen, and its owner and mode are set last. */
#define SYSV_NEW (IPC_CREAT | IPC_EXCL | 0600)

/* The object with status @s, without its contents and not added to the dump yet: the caller's, for fd_object_add() or
 * fd_object_free(). */
struct fd_object sysv_new_object(
	struct fd_dump *d, const struct sysv_kind *k, const struct sysv_status *s);

/* IPC_SET of object @id, with what @d points to, of the kind's own type. */
typedef int sysv_set_fn(int id, void *d);

/* By @set, with @perm in @d; @as_was: all else in there is as it was. EINVAL: this user
 * namespace has no such user. In there nobody else can use an object that has been made, so
 * that nobody is kept out or let in if it stays ours. An object that is still there is
 * another user's already. -1 and errno. */
int sysv_set_perm(const struct image_object *o, struct ipc_perm *perm, bool as_was,
	sysv_set_fn *set, void *d);

/* Behind a message about EACCES, of an object that is copied. */
#define SYSV_MODE_HINT " (its mode keeps its own user out: change that, or run trecr as root)"

/* Whether its mode, as of image_object.mode, keeps its owner from reading or writing it. */
bool sysv_keeps_owner_out(const struct image_object *o);

/* An object that is still there may have a mode that keeps even its owner out. @perm is in @d, which
 * @status is the result of asking for. -1 and errno. */
int sysv_let_in(int id, int status, struct ipc_perm *perm, sysv_set_fn *set, void *d);

#endif
