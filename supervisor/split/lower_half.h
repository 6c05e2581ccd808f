/*
 * split/lower_half.h - the lower half of a process, as seen from outside
 * (doc/split-process.md).
 *
 * A process that has used a library of which trecr has a stub has two halves. What is known of
 * the lower one comes from records in upper memory (shared/records.h) and from the table that
 * the halves share (shared/table.h).
 */
#ifndef SUPERVISOR_SPLIT_LOWER_HALF_H
#define SUPERVISOR_SPLIT_LOWER_HALF_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "shared/records.h"
#include "shared/table.h"
#include "supervisor/split/staging.h"
#include "supervisor/target/process.h"

struct lower_half {
	struct crossing_info info;
	enum records_lower state;
	pid_t helper; /* thread of the upper half that makes calls for the lower one, 0: none;
		       * as the process sees it */
	struct buf tids; /* pid_t: the lower half's own threads, which are let alone */
	bool drained;
	uint64_t
		patience_ns; /* for the next order: how long devices may take to come to rest */
	uint64_t session;    /* for LOWER_DRAIN: the checkpoint's own number */
	unsigned gpu_choice; /* for orders of a restart: enum lower_gpu_choice, bits */
	bool restless;       /* the last one failed as they did not */
	bool pending;        /* it failed as something is half done, perhaps for long */
	bool no_room;        /* it failed as others use the devices */
	bool unable;         /* to hash device memory; of any order, for good */
	bool has_snapshot;   /* split/device_snapshot.h: the process runs */
	/* To be asked while an order is carried out, whether it is still wanted; NULL: it is. */
	int (*look)(void *arg, struct err *e);
	void *look_arg;
	int order_fd, done_fd; /* borrowed, -1: not yet */
	struct staging staging;
};

/* See whether @p has a lower half: then p->lower is filled. To be asked again while it runs.
 * Fails when what the process keeps of it makes no sense. */
int lower_find(struct process *p, struct err *e);
/* A thread of the process, whose threads are stopped, is at bringing one up. */
bool lower_is_coming(const struct process *p);
void lower_free(struct lower_half *lower);

/* Read memory of process @pid: all of it, or -1 with errno. What is read there is the program's
 * to overwrite: it may be anything. */
int lower_peek(pid_t pid, uint64_t address, void *data, size_t size);
/* That it is not what it should be. -1. */
int lower_damaged(pid_t pid, struct err *e);

/* Whether thread @tid is known to be the lower half's own. */
bool lower_owns(const struct process *p, pid_t tid);

/* ---- stopping it (split/lower_stop.c) ---- */

enum lower_verdict {
	LOWER_FROZEN, /* outside of the lower half */
	LOWER_RUNS,   /* it was let run on, and has to be stopped again */
	LOWER_OWN,    /* the lower half's own: no longer traced */
};

/* Look at thread @t, in a trap stop. */
/* Whether it is, as far as can be told without stopping it: asleep on a stack in the window. */
bool lower_sleeps(struct process *p, pid_t tid);
int lower_judge(
	struct process *p, struct thread *t, enum lower_verdict *verdict, struct err *e);
/* @t is at a system call: 1 when it has come out of the lower half by it, and will be in a trap
 * stop next; else 0 and nothing has been done. */
int lower_comes_out(struct process *p, struct thread *t, struct err *e);

/* ---- orders (split/lower_orders.c) ---- */

/* Have the lower half do something; the deadline is CLOCK_MONOTONIC. */
int lower_order(struct process *p, enum lower_request request,
	const struct lower_transfer *transfers, unsigned count, uint64_t deadline_ns,
	struct err *e);

/* Call @tell with each line that the last order, which has succeeded, has for the user. */
void lower_notices(struct process *p, void (*tell)(void *arg, char *line), void *arg);

/* Whether it still carries out an order, which nobody waits for any more. */
bool lower_is_busy(pid_t pid);

/* After LOWER_DRAIN of all processes of a tree: that what this one has of others (shared/share.h) is
 * theirs still. */
int lower_agree(struct process *p, uint64_t deadline_ns, struct err *e);

/* After a drain that failed as the devices did not come to rest: wait for them while process
 * @pid runs, at most until @deadline_ns. What goes wrong the next drain tells. */
void lower_await_rest(pid_t pid, uint64_t deadline_ns);

/* ---- what is whose (split/lower_exclude.c) ---- */

/* Read what lower_has_memory() goes by; the process is frozen. */
int lower_read_parts(struct process *p, struct err *e);
/* 1: the mapping is the lower half's, or a dead copy of an ancestor's; 0: it is not. */
int lower_has_memory(struct process *p, const struct vma *v, struct err *e);
/* Descriptors from *limit on are the lower half's, and all of them are; else this fails. */
int lower_fd_limit(const struct process *p, int *limit, struct err *e);
/* A mapping of the upper half must not be the driver's own library. */
int lower_refuse_driver(const struct process *p, const struct vma *v, struct err *e);

#endif
