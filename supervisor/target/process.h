/*
 * process.h - a frozen process and its threads, as the supervisor sees them.
 */
#ifndef SUPERVISOR_TARGET_PROCESS_H
#define SUPERVISOR_TARGET_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/target/clocks.h"
#include "supervisor/target/tracee.h"

struct thread {
	struct tracee tracee;
	pid_t vtid; /* its id as the process sees it (innermost pid namespace) */
	/* Where it was stopped. What it resumes from, when that differs (a system call that
	 * has to be entered again), is put in here before the thaw. */
	struct user_regs_struct regs;
	struct tracee_rseq rseq;
	char *status;              /* what /proc shows of it, once all are stopped */
	bool regs_changed;         /* regs differ from what the kernel holds */
	uint64_t syscall_start_ns; /* see syscall/interrupted_call.h; 0: unknown */
	uint64_t sleeps;           /* how often it has gone to sleep so far; 0: unknown */
	char blocked_at[32];       /* kernel function, for a restarted system call */
	long continued_call;       /* by restart_syscall(2), when let go; 0: none, or unknown */
	uint32_t syscall_class;    /* enum image_syscall */
	uint64_t syscall_left_ns;
	bool uses_rings; /* it has used an io_uring, or might have */
	int seccomp;     /* SECCOMP_MODE_* of its own; 0: none, or what we are under as well */
	bool helper;     /* of the lower half: not to be stopped before that has come to rest */
	bool in_lower_half; /* while it is being stopped: to be stopped on its way out */
	bool let_run;       /* outside, but it runs on until nobody is inside any more */
	bool came_out;      /* it was inside: it is not let in again */
};

struct process {
	pid_t pid, vpid;
	/* A thread of it that lives, the first one if it does: under its id /proc shows the
	 * process, while a leader that has ended has neither memory nor descriptors. */
	pid_t task;
	bool leader_ended;         /* while others run on: it is none of `threads` */
	uint32_t leader_exit_code; /* as of waitpid(2) */
	pid_t parent;              /* 0: none of the tree */
	pid_t vparent;             /* as the process sees it; filled by dump_tree() */
	bool zombie; /* has ended, and its parent has not waited for it: no threads */
	int mem_fd;  /* /proc/PID/mem */
	char comm[64];
	uint32_t terminal; /* as in struct image_job_process */
	/* By enum image_shared: number in the tree of the first process that has the same. */
	size_t owner[IMAGE_SHARED_KINDS];
	int exit_signal;        /* what the parent gets at its end */
	struct thread *threads; /* living ones, the leader first */
	size_t thread_count, thread_room;
	uint64_t vdso, vdso_size;
	uint64_t cave; /* 0: not looked for yet */
	size_t cave_room;
	bool sees_us;      /* by our process id: it is in our pid namespace */
	bool may_have_aio; /* a mapping of it has the name of contexts of asynchronous I/O */
	bool cave_lost;    /* a thread may still be on its way home: nothing more is run */
	struct lower_half *lower; /* split/lower_half.h; NULL: it has none; */
	void (*free_lower)(struct lower_half *lower); /* else what frees it */
	bool has_window;    /* it has a lower half, or the remains of its parent's */
	struct buf window;  /* struct space_range: its memory in the window, ascending, */
	struct buf found;   /* what is another's there, */
	struct buf outside; /* and its memory outside of the window */
	bool adopts;        /* orphans among its descendants become its children */
	bool stop_owed;     /* a SIGSTOP came while system calls were run in it */
};

/* The frozen tree: the root first, parents before children, zombies last. */
struct tree {
	struct process **processes;
	size_t count;
	size_t living; /* that are no zombies */
	size_t pid_level; /* ids that each has for us: one in our pid namespace, and one in each below */
	struct clock_shifts clocks; /* the tree's against ours */
};

/* How mappings are called that are contexts of asynchronous I/O (aio_setup_ring() in the kernel). */
#define AIO_NAME "/[aio]"

/* Open /proc/PID/mem, find the cave, and see what its memory map tells. Once a process, after it has been frozen. */
int process_prepare(struct process *p, struct err *e);

/* The process of that id; NULL: it has none. */
struct process *tree_find(const struct tree *tree, pid_t pid);

void process_free(struct process *p);
void tree_free(struct tree *tree);

#endif
