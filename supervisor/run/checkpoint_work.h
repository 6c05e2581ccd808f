/*
 * checkpoint_work.h - what the files that take a checkpoint (take_checkpoint.h) share: what it
 * is made for, and what has been made of it so far.
 */
#ifndef SUPERVISOR_RUN_CHECKPOINT_WORK_H
#define SUPERVISOR_RUN_CHECKPOINT_WORK_H

#include <stdint.h>
#include <sys/types.h>

#include "ckpt/store.h"
#include "lib/util.h"
#include "supervisor/run/take_checkpoint.h"
#include "supervisor/split/running_mpi.h"
#include "supervisor/state/dump.h"
#include "supervisor/state/own_state.h"
#include "supervisor/tree/gpu_wait.h"

/* What a process has to do with blocks that several have (ckpt/common_blocks.h): others may find its, and it looks for
 * those of others. */
struct peer_role {
	bool is_peer, looks;
};

struct checkpoint_work {
	struct supervisor *s;
	const struct checkpoint_request *request;
	struct under_way *under_way;
	struct gpu_wait *gpu_wait;
	struct throttle throttle;
	struct err *e;
	int result;
	_Atomic pid_t freezer; /* the thread that freezes the tree; -1: that is done */

	struct running_mpi mpi; /* checkpoint_quiesce.c */
	struct buf limits;      /* struct quiesce_limit: what it was told */

	struct tree tree;
	uint64_t frozen_ns; /* when the freeze began; 0: not frozen */
	uint8_t id[16];
	uint64_t sequence;
	struct complete_checkpoint *made; /* filled when it is complete */
	int dirfd;
	struct checkpoint *parent;
	struct image_job info;

	struct image_writer *job;
	struct image_writer **writers; /* one for each living process of the tree */
	struct dump *dumps;
	size_t process_count;         /* of both */
	struct namespaces namespaces; /* of the program */
	struct own_state own;
	uint64_t fork_room;      /* bytes that copies of further processes may take */
	struct peers *peers;     /* NULL: no process can have blocks of another one */
	struct peer_role *roles; /* of each process */
	size_t last_looks;       /* the last process that looks for them */
	struct buf shared_runs;  /* struct block_run: shared memory without a descriptor */
	struct fd_dump *fds;
	struct buf ending; /* pidfds of processes that have been killed */
};

/* Choose its id, open its parent and begin to write it. On failure there is nothing to end. */
int checkpoint_work_begin(struct checkpoint_work *w);

void checkpoint_work_end(struct checkpoint_work *w);

/* -1, with @e filled, when it is cancelled or out of time. */
int checkpoint_given_up(const struct checkpoint_work *w, struct err *e);

/* Who becomes the parent of a process whose parent ends. */
pid_t checkpoint_reaper(const struct checkpoint_work *w);

/* The parent's file of the process with id @vpid; NULL: it has none. */
const struct image *checkpoint_parent_process(const struct checkpoint_work *w, pid_t vpid);

#endif
