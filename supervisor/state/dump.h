/*
 * state/dump.h - what the kernel holds for a frozen process, into an image.
 *
 * Each part reads through /proc, ptrace and injected system calls and changes nothing. What
 * cannot be saved makes it fail with the process and the reason named.
 */
#ifndef SUPERVISOR_STATE_DUMP_H
#define SUPERVISOR_STATE_DUMP_H

#include <stdbool.h>

#include "ckpt/blocks.h"
#include "ckpt/image_write.h"
#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/target/dirty.h"
#include "supervisor/target/memory_limits.h"
#include "supervisor/target/process.h"
#include "supervisor/target/remote_query.h"

struct device_snapshot;
struct fd_dump;
struct image_thread;
struct maps_ahead;
struct module_cache;

/* What /proc/PID/ns shows of a process, NULL where this kernel has no such thing. */
#define NAMESPACES 10
struct namespaces {
	char *links[NAMESPACES];
};

/* The namespaces of @of, but for the time namespace, which is @clocks_of's. */
void namespaces_read(struct namespaces *n, pid_t of, pid_t clocks_of);
void namespaces_free(struct namespaces *n);

/* What is gathered for one process while it is frozen. */
struct dump {
	struct process *process;
	struct image_writer *writer;     /* of the process's file */
	struct image_writer *job_writer; /* of the job's file */
	/* The file of the process that keeps the memory, when that is another one: as a core
	 * file it shows the threads of all. Else NULL. */
	struct image_writer *memory_writer;
	struct fd_dump *fds;
	struct module_cache *modules;
	const struct namespaces *namespaces; /* that the target must share */
	const struct own_state *own;         /* state/own_state.h: the supervisor's */
	uint64_t deadline_ns;                /* of the checkpoint, CLOCK_MONOTONIC; 0: none */
	bool portable;
	bool has_capabilities;
	int64_t securebits; /* of its first thread, where it has capabilities */

	/* Pages that nothing has been written to since the parent checkpoint need not be looked
	 * at: NULL if all are to be. */
	struct dirty_list *dirty;
	bool alone;               /* no other process shares its memory */
	const uint8_t *parent_id; /* NULL: there is none */
	bool knows_clean;         /* since the parent checkpoint its pages have been watched */
	bool may_wait; /* a copy may be made: its page tables can be walked instead */

	struct maps_ahead *maps_ahead; /* memory/maps_ahead.h; NULL: there is none */
	size_t number;                 /* of the process in it */
	struct vma_list vmas;
	struct buf regions;      /* memory/private_pages.h: until all is known of them */
	struct buf policies;     /* struct image_mempolicy, until the regions are known */
	struct buf watched;      /* struct vma: to be protected by dump_protect() */
	struct buf modules_used; /* struct image_module, in the note's order */
	struct buf runs;         /* struct block_run: private memory, for blocks_write() */
	bool is_written;         /* it has been, with that of other processes */
	/* The same of pages that a fork copies: they may be written later, from the copy. */
	struct buf copied_runs;
	/* The same of device memory that is hashed there: from a copy on the device. */
	struct buf device_runs;
	struct device_snapshot
		*device_snapshot; /* split/device_snapshot.h; NULL: there is none */
	struct process *copy;     /* target/process_copy.h; NULL: there is none */
	struct buf *shared_runs;  /* the same for shared objects, of all processes, to go to the
				  * job's file */
	struct buf contexts;      /* memory that the runs' contexts live in */
	/* Of those, what runs at their own addresses have (memory_source_own()); NULL: none yet. */
	struct memory_source *own_sources[2][2];
	struct buf device; /* struct device_range: memory of GPUs */
	uint64_t memory_bytes;
	struct memory_use use; /* while it is frozen */
};

void dump_free(struct dump *d);

/* Directories of threads that have left the process's. */
int dump_directories(struct dump *d, const struct tree *tree, struct err *e);
/* Before anything is run in the process: refuse what cannot be saved or must not be disturbed.
 */
int dump_refuse(struct dump *d, struct err *e);
/* First of all, before anything runs in a thread: move threads that stopped inside a
 * restartable sequence out of it, here and in the image. */
int dump_prepare(struct dump *d, struct err *e);
/* Threads and their registers, and process-wide state: struct image_process, auxiliary vector, vdso, groups; and
 * the standard core notes. */
int dump_process(struct dump *d, struct err *e);
/* What the thread @t has set for itself, into @it. */
int dump_thread_settings(
	struct dump *d, struct thread *t, struct image_thread *it, struct err *e);
/* Threads and their registers; @first has the settings of the first. */
int dump_threads(struct dump *d, const struct image_thread *first, struct err *e);
/* The kernel's struct sigaction, as rt_sigaction(2) takes it. */
struct kernel_sigaction {
	uint64_t handler, flags, restorer, mask;
};
#define SIGACTIONS 64
/* Signal actions: fill @queries (SIGACTIONS of them) for the process, whose answers come to lie at @actions. */
void ask_sigactions(struct remote_query *queries, struct kernel_sigaction *actions);
int dump_sigactions(struct dump *d, const struct remote_query *answers,
	const struct kernel_sigaction *actions, struct err *e);
/* Add all pending signals to @out (struct image_pending). */
int dump_pending(struct dump *d, struct buf *out, struct err *e);
/* Adds a notice for a login id of its own, which is not saved. */
void dump_login_id(const struct dump *d);
#define KEYRING_QUERIES 4
/* Keyrings, which are not saved: fill @queries for the process, KEYRING_QUERIES at most; returns how many. With
 * all answers a notice may be added. */
size_t ask_keyrings(struct remote_query *queries);
void dump_keyrings(const struct dump *d, const struct remote_query *answers);

struct process_timers {
	struct buf posix;                     /* struct image_timer */
	uint64_t value_us[3], interval_us[3]; /* ITIMER_REAL, VIRTUAL, PROF */
};

/* The kernel's struct itimerval. */
struct interval_timer {
	uint64_t interval_s, interval_us, value_s, value_us;
};
#define INTERVAL_TIMERS 3
/* Timers of setitimer(2): fill @queries (INTERVAL_TIMERS of them), whose answers come to lie at @timers. */
void ask_interval_timers(struct remote_query *queries, struct interval_timer *timers);

/* Timers, and the pending signals of all threads with them: what fires meanwhile must be in
 * one of the two. @answers and @timers have just been got. The caller frees out->posix. */
int dump_timers_and_pending(struct dump *d, struct remote *r,
	const struct remote_query *answers, const struct interval_timer *timers,
	struct process_timers *out, struct err *e);

#endif
