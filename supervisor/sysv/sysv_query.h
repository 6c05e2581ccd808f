/*
 * sysv_query.h - what the kernel shows of System V objects.
 *
 * It tells it by system calls only, in the caller's IPC namespace: a namespace that a restart has
 * made for the tree can only be asked from within. Where the supervisor is in the same one, it asks
 * itself, which takes no process of the tree, and a thousandth of the time.
 */
#ifndef SUPERVISOR_SYSV_SYSV_QUERY_H
#define SUPERVISOR_SYSV_SYSV_QUERY_H

#include <sys/ipc.h>
#include <sys/syscall.h>
#include <time.h>

#include "supervisor/target/process.h"
#include "supervisor/target/remote.h"

#define SYSV_SCRATCH    (256u * 1024)
#define SYSV_ANSWER     0u     /* offsets in it: what the kernel fills, */
#define SYSV_OPERATIONS 65536u /* and what it is given */

/* The process that asks. */
struct sysv_asker {
	struct process *process; /* one of the tree's; NULL: we ourselves */
	struct remote remote;
	uint64_t scratch; /* in its memory, SYSV_SCRATCH bytes */
	void *own;        /* that, of us ourselves */
};

/* What is common to all three kinds. To be freed when it has been filled. */
struct sysv_status {
	struct ipc_perm perm;
	int id;
	uint64_t size; /* bytes, semaphores, bytes that it may hold */
	uint64_t attached, messages, bytes;
	time_t changed, used;
	struct buf
		users; /* pid_t: the processes that made it, or used it or a part of it last */
	bool unused;
};

/* System call @nr by the asker. -1 when it could not be made; else *result is as the kernel has
 * it, negative for an error. */
int sysv_ask(
	struct sysv_asker *a, long nr, const uint64_t args[6], int64_t *result, struct err *e);
#define SYSV_ASK(a, result, e, nr, ...)                                                        \
	sysv_ask((a), (nr), (const uint64_t[6]){__VA_ARGS__}, (result), (e))

void sysv_asker_here(struct sysv_asker *a);
int sysv_asker_begin(struct sysv_asker *a, struct process *p, struct err *e);

/* -1 also when what was asked has @failed, whose error stays. */
int sysv_asker_end(struct sysv_asker *a, int failed, struct err *e);

/* The first @size bytes of what the kernel has filled; or what is anywhere in the asker's
 * memory.
 */
int sysv_answer(const struct sysv_asker *a, void *data, size_t size, struct err *e);
int sysv_read(
	const struct sysv_asker *a, uint64_t address, void *data, size_t size, struct err *e);

/* Fill @s with what is common to all kinds; nobody has used it so far. */
void sysv_status_begin(
	struct sysv_status *s, const struct ipc_perm *perm, int id, time_t changed);
/* Process @pid has made it, or used it or a part of it last; 0: none. */
void sysv_status_add_user(struct sysv_status *s, pid_t pid);
void sysv_status_free(struct sysv_status *s);

time_t sysv_later(time_t a, time_t b);

#endif
