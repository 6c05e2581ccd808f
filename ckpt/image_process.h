/*
 * image_process.h - the part of image.h about processes: which there are and what they share; each one with its threads,
 * signals, timers, regions of memory and mapped files.
 */
#ifndef CKPT_IMAGE_PROCESS_H
#define CKPT_IMAGE_PROCESS_H

#include "ckpt/image.h"

/*
 * The processes of the tree: the root first, parents before their children; behind all living processes
 * the zombies, which have no file of their own. Ids are as in the pid namespace that the processes see.
 */
struct image_job_process {
	int32_t pid;
	int32_t ppid;      /* 0: the supervisor, or its namespace's init */
	int32_t pgid, sid; /* 0: the supervisor's own */
	uint32_t comm;     /* string */
	uint32_t threads;
	uint16_t flags; /* IMAGE_JOB_PROCESS_* */
	/* As of waitpid(2): how a ZOMBIE has ended, or by what signal it was stopped. */
	uint16_t status;
	uint32_t uid;      /* real user */
	uint32_t terminal; /* number + 1 of the pseudo-terminal that controls it; 0: none that
			    * is the tree's own */
	uint32_t reserved;
};
IMAGE_SIZE_IS(struct image_job_process, 40);

#define IMAGE_JOB_PROCESS_ZOMBIE     0x1u
#define IMAGE_JOB_PROCESS_FOREGROUND 0x2u  /* its group is the terminal's foreground group */
#define IMAGE_JOB_PROCESS_STOPPED    0x4u  /* by the signal in status, */
#define IMAGE_JOB_PROCESS_UNTOLD     0x8u  /* for which its parent has not waited yet, */
#define IMAGE_JOB_PROCESS_CONTINUED  0x10u /* or not for its being continued */

/* What clone(2) lets processes share. */
enum image_shared {
	IMAGE_SHARED_MEMORY,    /* CLONE_VM */
	IMAGE_SHARED_FILES,     /* CLONE_FILES: the table of descriptors */
	IMAGE_SHARED_DIRECTORY, /* CLONE_FS: working and root directory, umask */
	IMAGE_SHARED_SIGNALS,   /* CLONE_SIGHAND: the actions of signals */
	IMAGE_SHARED_KINDS,
};

/*
 * In the order of IMAGE_NOTE_PROCESSES. What processes share is saved once, with the first that
 * has it: the files of the others have no regions, modules and extents, or no descriptors.
 */
struct image_sharing {
	/* The first process that has the same: its number in IMAGE_NOTE_PROCESSES. The
	 * process's own where there is none before it. */
	uint32_t with[IMAGE_SHARED_KINDS];
	uint32_t exit_signal; /* what its parent gets at its end; SIGCHLD in most cases */
};
IMAGE_SIZE_IS(struct image_sharing, 20);

#define IMAGE_RLIMITS 16

/* Times in nanoseconds unless named otherwise. */
struct image_process {
	int32_t pid, ppid, pgid, sid; /* as the process itself sees them */
	uint32_t uid[4], gid[4];      /* real, effective, saved, filesystem */
	uint64_t cap_inheritable, cap_permitted, cap_effective, cap_bounding, cap_ambient;
	uint32_t securebits, no_new_privs;
	uint32_t umask, personality;
	uint32_t dumpable, child_subreaper;
	uint32_t exe, cwd, root; /* strings: paths */
	uint32_t cwd_object;    /* of a working directory that has been removed; 0: cwd is it */
	uint32_t thp_disable;   /* prctl(PR_GET_THP_DISABLE): with its flags */
	uint32_t oom_score_adj; /* two's complement */
	uint64_t start_code, end_code, start_data, end_data, start_brk, brk;
	uint64_t start_stack, arg_start, arg_end, env_start, env_end;
	uint64_t vdso_start, vdso_size;
	uint64_t reserved_too[2];
	uint64_t rlimit_cur[IMAGE_RLIMITS], rlimit_max[IMAGE_RLIMITS];
	/* ITIMER_REAL, VIRTUAL, PROF: microseconds */
	uint64_t itimer_value_us[3], itimer_interval_us[3];
	uint32_t flags;            /* IMAGE_PROCESS_* */
	uint32_t xcomp_permission; /* arch_prctl(ARCH_GET_XCOMP_PERM): AMX */
	uint32_t coredump_filter;
	uint32_t mdwe;         /* prctl(PR_GET_MDWE) */
	uint32_t memory_merge; /* prctl(PR_GET_MEMORY_MERGE) */
	uint32_t membarrier;   /* MEMBARRIER_CMD_REGISTER_*, those in force */
};
IMAGE_SIZE_IS(struct image_process, 584);

#define IMAGE_PROCESS_STOPPED      0x1u /* by a job-control signal */
#define IMAGE_PROCESS_LOCK_FUTURE  0x2u /* mlockall(MCL_FUTURE) */
#define IMAGE_PROCESS_LOCK_ONFAULT 0x4u /* and MCL_ONFAULT */
/* Its security label (AppArmor, SELinux, Smack) was not that of the trecr that saved it. */
#define IMAGE_PROCESS_LABELLED 0x8u

/* struct image_thread.syscall_class: what the thread was in when it was stopped. */
enum image_syscall {
	IMAGE_SYSCALL_NONE = 0,      /* user code, or restarted by the kernel from registers */
	IMAGE_SYSCALL_RESTART_BLOCK, /* needs a restart block: time left in syscall_left_ns */
	IMAGE_SYSCALL_AGAIN,         /* returns EINTR after any stop: to be entered again */
};

#define IMAGE_SYSCALL_FOREVER UINT64_MAX

#define IMAGE_THREAD_IN_VDSO    0x1u /* stopped inside the vdso: needs the same one again */
#define IMAGE_THREAD_ENDED      0x2u /* the leader, which has ended before the others */
#define IMAGE_THREAD_NO_TSC     0x4u /* prctl(PR_SET_TSC, PR_TSC_SIGSEGV) */
#define IMAGE_THREAD_NO_CPUID   0x8u /* arch_prctl(ARCH_SET_CPUID, 0) */
#define IMAGE_THREAD_IO_FLUSHER 0x10u
#define IMAGE_THREAD_MCE_EARLY  0x20u /* prctl(PR_MCE_KILL): told early of bad memory, */
#define IMAGE_THREAD_MCE_LATE   0x40u /* or late; neither: as the system does */

/* struct image_thread.speculation[]: in the order of prctl(PR_GET_SPECULATION_CTRL). */
#define IMAGE_SPECULATIONS 3

/* Nodes of a memory policy. */
#define IMAGE_NODES 1024

/* As of get_mempolicy(2): the mode with its flags, 0 for the default, and the nodes. */
struct image_policy {
	uint32_t mode;
	uint32_t reserved;
	uint8_t nodes[IMAGE_NODES / 8];
};
IMAGE_SIZE_IS(struct image_policy, 136);

/* Registers are struct user_regs_struct of <sys/user.h>, in its order. */
#define IMAGE_REGS 27

struct image_thread {
	int32_t tid;
	uint32_t flags;
	uint64_t regs[IMAGE_REGS];
	uint64_t sigmask;
	uint64_t sigaltstack_sp, sigaltstack_size;
	uint64_t robust_list, robust_list_size;
	uint64_t rseq, rseq_size, rseq_signature, rseq_flags;
	uint64_t clear_child_tid;
	uint64_t xstate_offset; /* in IMAGE_NOTE_XSTATE */
	uint32_t xstate_size;
	uint32_t sigaltstack_flags;
	uint32_t sched_policy, sched_flags;
	int32_t nice;
	uint32_t sched_priority;
	uint64_t sched_runtime, sched_deadline, sched_period;
	uint8_t affinity[128]; /* CPU mask, 1024 CPUs */
	uint8_t comm[16];
	uint32_t pdeathsig;
	uint32_t syscall_class; /* enum image_syscall */
	uint64_t syscall_left_ns;
	uint64_t timer_slack_ns;
	uint32_t ioprio;
	uint32_t exit_code;                       /* ENDED: as of waitpid(2) */
	uint32_t util_min, util_max;              /* of sched_getattr(2); both 0: not told */
	uint32_t speculation[IMAGE_SPECULATIONS]; /* PR_SPEC_*, 0: not the thread's to choose */
	uint32_t reserved;
	struct image_policy policy; /* where its memory comes from */
};
IMAGE_SIZE_IS(struct image_thread, 696);

/* What a thread is under by seccomp(2). */
struct image_filter {
	int32_t tid;
	uint32_t flags;        /* SECCOMP_FILTER_FLAG_* */
	uint32_t first, count; /* in IMAGE_NOTE_FILTER_CODE; count 0: strict mode */
};
IMAGE_SIZE_IS(struct image_filter, 16);

/* A thread's own, where they are not the process's (unshare(2) with CLONE_FS). */
struct image_directories {
	int32_t tid;
	uint32_t umask;
	uint32_t cwd, root; /* strings: paths */
};
IMAGE_SIZE_IS(struct image_directories, 16);

enum image_region_kind {
	IMAGE_REGION_ANON = 1,    /* private anonymous */
	IMAGE_REGION_FILE,        /* private mapping of a file: `module` */
	IMAGE_REGION_SHARED_FILE, /* shared mapping of a file: its contents stay in the file */
	IMAGE_REGION_SHARED,      /* shared mapping of an object of ours: `object` */
	IMAGE_REGION_VDSO,
	IMAGE_REGION_VVAR,
	IMAGE_REGION_DEVICE,  /* memory of GPU number `object`; tag gpu */
	IMAGE_REGION_SYSV,    /* attached System V shared memory: `object` */
	IMAGE_REGION_URING,   /* the memory of an io_uring: `object` */
	IMAGE_REGION_AIO,     /* a context of asynchronous I/O: struct image_aio_ring */
	IMAGE_REGION_PRIVATE, /* private mapping of an object of ours: `object` */
};

/* As the kernel has it, and events of 32 bytes behind it (struct aio_ring, fs/aio.c). */
struct image_aio_ring {
	uint32_t id, nr; /* not the same after a restart; room for so many events */
	uint32_t head, tail;
	uint32_t magic;
	uint32_t features[2];
	uint32_t header_size;
};
IMAGE_SIZE_IS(struct image_aio_ring, 32);
#define IMAGE_AIO_MAGIC 0xa10a10a1u

/* A request that waits for a file (IOCB_CMD_POLL), in the order in which they were issued. */
struct image_aio_request {
	uint64_t context; /* the start of its region */
	uint64_t request; /* address of the struct iocb */
	uint32_t events;  /* of this address that were not read yet; more in the context's
			   * memory:  it has ended since */
	uint32_t reserved;
};
IMAGE_SIZE_IS(struct image_aio_request, 24);

enum image_tag {
	IMAGE_TAG_UPPER = 1,
	IMAGE_TAG_LOWER = 2, /* never in an image of this version */
	IMAGE_TAG_GPU = 3,
};

/* image_region.flags */
#define IMAGE_REGION_STACK       0x0001u /* [stack], MAP_GROWSDOWN */
#define IMAGE_REGION_HEAP        0x0002u /* [heap] */
#define IMAGE_REGION_GROWSDOWN   0x0004u
#define IMAGE_REGION_NORESERVE   0x0008u
#define IMAGE_REGION_LOCKED      0x0010u
#define IMAGE_REGION_LOCKONFAULT 0x0020u
#define IMAGE_REGION_HUGETLB     0x0040u
#define IMAGE_REGION_DROPPABLE   0x0080u /* MAP_DROPPABLE: contents never saved */

/* image_region.advice: one bit for each lasting madvise(2) */
#define IMAGE_ADVICE_SEQUENTIAL 0x001u
#define IMAGE_ADVICE_RANDOM     0x002u
#define IMAGE_ADVICE_DONTFORK   0x004u
#define IMAGE_ADVICE_DONTDUMP   0x008u
#define IMAGE_ADVICE_WIPEONFORK 0x010u
#define IMAGE_ADVICE_MERGEABLE  0x020u
#define IMAGE_ADVICE_HUGEPAGE   0x040u
#define IMAGE_ADVICE_NOHUGEPAGE 0x080u
#define IMAGE_ADVICE_GUARD      0x100u /* the whole region is one guard (kernel 6.13) */

struct image_region {
	uint64_t start, end;
	uint64_t offset; /* in the file or object */
	uint64_t page_size;
	uint32_t prot; /* PROT_READ | PROT_WRITE | PROT_EXEC */
	uint32_t kind; /* enum image_region_kind */
	uint32_t flags, advice;
	uint32_t tag;    /* enum image_tag */
	uint32_t module; /* index in IMAGE_NOTE_MODULES + 1; FILE and SHARED_FILE */
	uint32_t
		object; /* index in IMAGE_NOTE_OBJECTS + 1; SHARED. Number of the GPU; DEVICE */
	uint32_t name;  /* string: as /proc/PID/maps shows it */
	uint32_t max_prot; /* what mprotect(2) may give: a shared file's open mode */
	uint32_t reserved;
};
IMAGE_SIZE_IS(struct image_region, 72);

/* Memory with a policy of its own (mbind); all other follows the thread that touches it. */
struct image_mempolicy {
	uint64_t start, end;
	struct image_policy policy;
};
IMAGE_SIZE_IS(struct image_mempolicy, 152);

struct image_sigaction {
	uint64_t handler, flags, restorer, mask;
};
IMAGE_SIZE_IS(struct image_sigaction, 32);

struct image_pending {
	int32_t tid; /* 0: of the process */
	uint32_t reserved;
	uint8_t siginfo[128]; /* siginfo_t as the kernel keeps it */
};
IMAGE_SIZE_IS(struct image_pending, 136);

struct image_timer {
	int32_t id, clock;
	int32_t notify; /* SIGEV_SIGNAL, SIGEV_NONE, SIGEV_THREAD_ID */
	int32_t signo;
	int32_t tid; /* SIGEV_THREAD_ID */
	uint32_t overrun;
	uint64_t sigval;
	uint64_t value_ns, interval_ns; /* value: what is left, 0: not armed */
};
IMAGE_SIZE_IS(struct image_timer, 48);

/* A mapped file, and how to know it again. */
struct image_module {
	uint32_t path;          /* string */
	uint32_t build_id_size; /* bytes, 0: none */
	uint8_t build_id[32];
	uint64_t size, dev, inode, mtime_ns;
	uint8_t hash[IMAGE_HASH_SIZE]; /* XXH3-128 of the contents; only without build-id */
	uint32_t flags;                /* IMAGE_MODULE_* */
	uint32_t reserved;
};
IMAGE_SIZE_IS(struct image_module, 96);

#define IMAGE_MODULE_HASHED  0x1u
#define IMAGE_MODULE_DELETED 0x2u /* no longer under its name: stored whole */

#endif
