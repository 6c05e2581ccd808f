/*
 * image.h - what is on disk. Nothing outside this header, and ckpt/image_sockets.h, which it includes, defines
 * a byte of an image.
 *
 * A checkpoint is a directory of files, each an ELF core file (ET_CORE, x86-64):
 *
 *	job	what the processes share: the job, its processes, file descriptions and shared
 *		objects with their contents
 *	PID	one process: standard core notes (gdb, eu-readelf and eu-stack read them), notes
 *		of owner "TRECR" for what a core lacks, and the memory that had to be stored
 *	PID.N, job.N
 *		more blocks of PID or job, which refers to them; nothing but a header and blocks
 *
 * Blocks that are as they were in the checkpoint before are in its files, and so are their hashes.
 *
 * Layout of each file:
 *
 *	0		ELF header, then at IMAGE_SUPER_OFFSET struct image_super
 *	4096		blocks of memory, page-aligned, and packs of compressed ones, in no
 *			particular order
 *	meta_offset	extents, hashes, notes, program headers, up to the end of the data;
 *			hashed as one piece, and once more in parts, so that the hashes can be
 *			read when they are needed. A hole of zeros may follow it (hole_size).
 *
 * Program headers: one PT_NOTE, PT_LOADs in the order of their addresses, and two of our own
 * types that locate the extents and the hashes.
 *
 * All numbers are little-endian. Strings live in the note IMAGE_NOTE_STRINGS, each ended by
 * NUL, and are named by their offset there; offset 0 is the empty string and means "none".
 *
 * A change of layout bumps IMAGE_VERSION. An addition that an old reader may ignore takes a bit of
 * compat, any other addition a bit of incompat. man/trecr-image.5 is the reader's page.
 */
#ifndef CKPT_IMAGE_H
#define CKPT_IMAGE_H

#include <stdint.h>

#define IMAGE_VERSION      3
#define IMAGE_BLOCK        4096u /* bytes hashed, compared and stored as one */
#define IMAGE_SUPER_OFFSET 64u   /* right behind the ELF header */
#define IMAGE_HEAD_SIZE    4096u
#define IMAGE_MAGIC        "\177TRECR\r\n"
#define IMAGE_OWNER        "TRECR"
#define IMAGE_JOB_FILE     "job"
#define IMAGE_MEMBERS_FILE "members" /* of a checkpoint of several members (members.h) */
#define IMAGE_HASH_SIZE    16u       /* XXH3-128, canonical (big-endian) form */
#define IMAGE_FILES        16u       /* at most, that the blocks of one process lie in */
#define IMAGE_BLOCKS_FILE  "%s.%u"   /* name of all but the first: the first's, its number */
#define IMAGE_PARTS_OFFSET 256u      /* struct image_parts */
#define IMAGE_MAKER_OFFSET 512u      /* struct image_maker */

#define IMAGE_SIZE_IS(type, size) _Static_assert(sizeof(type) == (size), #type)

enum image_file_kind {
	IMAGE_FILE_JOB = 1,
	IMAGE_FILE_PROCESS = 2,
	IMAGE_FILE_BLOCKS = 3, /* blocks only: no metadata, meta_offset is file_size */
};

/* Feature bits of struct image_super.incompat. */
#define IMAGE_INCOMPAT_CHAIN    0x1u   /* some extents lie in other files */
#define IMAGE_INCOMPAT_LOWER    0x2u   /* the process has a lower half, to be made again */
#define IMAGE_INCOMPAT_SHARED   0x4u   /* processes share things: IMAGE_NOTE_SHARING */
#define IMAGE_INCOMPAT_APART    0x8u   /* threads have left what their process has */
#define IMAGE_INCOMPAT_FILTERS  0x10u  /* threads are under seccomp filters */
#define IMAGE_INCOMPAT_WATCHES  0x20u  /* epoll watches files by numbers that lead elsewhere */
#define IMAGE_INCOMPAT_REMOVED  0x40u  /* a working directory has been removed */
#define IMAGE_INCOMPAT_REQUESTS 0x80u  /* requests wait in an io_uring, to be issued again */
#define IMAGE_INCOMPAT_OWNERS   0x100u /* open files have an owner_kind */
#define IMAGE_INCOMPAT_PACKS    0x200u /* some blocks are compressed: IMAGE_NOTE_PACKS */
#define IMAGE_INCOMPAT_AIO      0x400u /* AIO requests are under way: to be issued again */
#define IMAGE_INCOMPAT_FILES    0x800u /* files of kind BLOCKS are in the chain */
#define IMAGE_INCOMPAT_PEERS    0x1000u /* files of other processes are: IMAGE_NOTE_CHAIN_NAMES */
#define IMAGE_INCOMPAT_NAMED    0x2000u /* objects of kind FILE have flags besides ABSENT */
#define IMAGE_INCOMPAT_LINKS    0x4000u /* some objects of kind FILE are symbolic links */
#define IMAGE_INCOMPAT_TABLES   0x8000u /* hashes are in other files: IMAGE_NOTE_HASH_TABLES */
#define IMAGE_INCOMPAT_KNOWN    (2 * IMAGE_INCOMPAT_TABLES - 1) /* the last one of them */

struct image_super {
	uint8_t magic[8];
	uint32_t version;
	uint32_t file_kind;
	uint64_t compat, incompat;
	uint64_t file_size;   /* of all that is not the trailing hole */
	uint64_t hole_size;   /* bytes of zeros behind file_size, sparse */
	uint64_t meta_offset; /* multiple of IMAGE_BLOCK */
	uint64_t meta_size;   /* meta_offset + meta_size == file_size */
	uint8_t meta_hash[IMAGE_HASH_SIZE];
	uint8_t checkpoint_id[16];
	uint32_t block_size;
	uint32_t reserved;
	uint64_t head_hash; /* XXH3-64 of the first IMAGE_HEAD_SIZE bytes with this field 0 */
};
IMAGE_SIZE_IS(struct image_super, 112);

/* Feature bits of struct image_super.compat. */
#define IMAGE_COMPAT_MAKER 0x1u /* the head of the job's file has a struct image_maker */
#define IMAGE_COMPAT_PARTS 0x2u /* it has a struct image_parts; there is IMAGE_NOTE_OWN_SUMS */

/* Checksums of the metadata before the hashes and behind them, for readers that need few hashes or none. */
struct image_parts {
	uint64_t hashes_offset, hashes_size; /* as in the program header IMAGE_PT_HASHES */
	uint8_t before[IMAGE_HASH_SIZE], behind[IMAGE_HASH_SIZE];
};
IMAGE_SIZE_IS(struct image_parts, 48);

/*
 * Which trecr made the image, for a trecr that cannot read it. So this stays where it is, and what it
 * is, whatever becomes of the rest; in another version, a checksum may or may not cover it.
 * Text, ended and filled up with NUL.
 */
struct image_maker {
	char version[64];
	char folder
		[1024]; /* of that release, with its trecr-restart; empty: none was installed */
};
IMAGE_SIZE_IS(struct image_maker, 1088);

/* Program header types of our own (PT_LOOS .. PT_HIOS). */
#define IMAGE_PT_EXTENTS 0x65747801u
#define IMAGE_PT_HASHES  0x65747802u

/*
 * A run of blocks of one object: of the process's memory (object 0, address = virtual
 * address) or of a shared object (object = index in IMAGE_NOTE_OBJECTS + 1, address = offset
 * in it). Sorted by (object, address), without overlap. What no extent covers was not stored:
 * for anonymous memory it is zero, for a file mapping it is what the file holds.
 */
enum image_extent_kind {
	IMAGE_EXTENT_DATA = 1,   /* blocks as they are */
	IMAGE_EXTENT_ZERO = 2,   /* all zero; no place in any file */
	IMAGE_EXTENT_PACKED = 3, /* compressed: blocks of one pack */
};

struct image_extent {
	uint64_t address;
	/* DATA: in the file that `source` names; PACKED: index in IMAGE_NOTE_PACKS */
	uint64_t file_offset;
	uint32_t first_hash; /* index in the hashes; DATA and PACKED */
	/* Whose hashes: 0 are those of this file, others are in IMAGE_NOTE_HASH_TABLES, which is
	 * counted from 1; DATA and PACKED with a source only */
	uint32_t hash_table;
	uint32_t blocks;
	uint32_t object;
	uint16_t kind;
	uint16_t skip;   /* PACKED: blocks of the pack that lie before the first one */
	uint32_t source; /* index in IMAGE_NOTE_CHAIN; 0 is this file itself */
};
IMAGE_SIZE_IS(struct image_extent, 40);

/* Whether its blocks are in a file, and have hashes. */
static inline int image_extent_is_stored(const struct image_extent *x)
{
	return x->kind == IMAGE_EXTENT_DATA || x->kind == IMAGE_EXTENT_PACKED;
}

/*
 * Hashes in another file, where they are part of the metadata. They are not read with that: each
 * IMAGE_HASH_PIECE of them have a checksum of their own in IMAGE_NOTE_HASH_SUMS.
 */
struct image_hash_table {
	uint64_t offset; /* in the file that `source` names */
	uint64_t count;
	uint64_t first_sum; /* index in IMAGE_NOTE_HASH_SUMS */
	uint32_t source;    /* index in IMAGE_NOTE_CHAIN */
	uint32_t reserved;
};
IMAGE_SIZE_IS(struct image_hash_table, 32);

#define IMAGE_HASH_PIECE 4096u /* hashes */

static inline uint64_t image_hash_pieces(uint64_t hashes)
{
	return hashes / IMAGE_HASH_PIECE + (hashes % IMAGE_HASH_PIECE != 0);
}

/* How the blocks of a pack are compressed. */
enum image_pack_method {
	IMAGE_PACK_LZ4 = 1,  /* an LZ4 block */
	IMAGE_PACK_ZSTD = 2, /* a Zstandard frame */
	IMAGE_PACK_METHODS,
};

#define IMAGE_PACK_BLOCKS 16u /* at most, in one pack */

/*
 * Blocks that were compressed together, which is what makes it worth while. Extents refer to
 * all of them or to some, and name the file that the pack is in. Blocks are hashed uncompressed, as
 * always; a pack has a hash of its own, so that damage is found before anything is decompressed.
 */
struct image_pack {
	uint64_t file_offset; /* anywhere among the blocks of the file */
	uint64_t hash;        /* XXH3-64 of its `size` bytes */
	uint32_t size;        /* bytes in the file, with what fills up a page behind the last */
	uint32_t used;        /* how many of them the method made */
	uint16_t blocks;      /* available from it */
	uint16_t method;      /* enum image_pack_method */
	uint32_t reserved;
};
IMAGE_SIZE_IS(struct image_pack, 32);

/* ---- notes of owner "TRECR": each an array of the struct named ---- */

/* In the file, a note's type is its number below plus this: gdb takes notes for registers and
 * the like by small type numbers alone, whatever their owner. */
#define IMAGE_NOTE_BASE 0x74720000u

enum image_note {
	IMAGE_NOTE_STRINGS = 1,      /* bytes, both kinds of file */
	IMAGE_NOTE_CHAIN = 2,        /* struct image_chain, both */
	IMAGE_NOTE_JOB = 3,          /* struct image_job, one; job */
	IMAGE_NOTE_PROCESSES = 4,    /* struct image_job_process; job */
	IMAGE_NOTE_DESCRIPTIONS = 5, /* struct image_description; job */
	IMAGE_NOTE_OBJECTS = 6,      /* struct image_object; job */
	IMAGE_NOTE_PROCESS = 7,      /* struct image_process, one; process */
	IMAGE_NOTE_THREADS = 8,      /* struct image_thread; process, leader first */
	IMAGE_NOTE_REGIONS = 9,      /* struct image_region; process, by address */
	IMAGE_NOTE_SIGACTIONS = 10,  /* struct image_sigaction, 64, signal 1 first; process */
	IMAGE_NOTE_PENDING = 11,     /* struct image_pending; process */
	IMAGE_NOTE_TIMERS = 12,      /* struct image_timer (timer_create); process */
	IMAGE_NOTE_FDS = 13,         /* struct image_fd; process */
	IMAGE_NOTE_MODULES = 14,     /* struct image_module (mapped files); process */
	IMAGE_NOTE_VDSO = 15,        /* bytes of the vdso; process */
	IMAGE_NOTE_XSTATE = 16,      /* bytes: all threads' XSAVE areas, see image_thread */
	IMAGE_NOTE_AUXV = 17,        /* bytes of the auxiliary vector; process */
	IMAGE_NOTE_GROUPS = 18,      /* uint32_t supplementary groups; process */
	IMAGE_NOTE_MEMPOLICIES = 19, /* struct image_mempolicy; process, by address */
	IMAGE_NOTE_LOWER = 20,       /* struct image_module: files of the lower half; process */
	IMAGE_NOTE_THREAD_FDS = 21,  /* struct image_thread_fd; process */
	IMAGE_NOTE_FILTERS = 22,     /* struct image_filter: oldest first; process */
	IMAGE_NOTE_FILTER_CODE = 23, /* uint64_t: struct sock_filter; process */
	IMAGE_NOTE_SOCKETS = 24,     /* struct image_socket; job */
	IMAGE_NOTE_SOCKET_OPTIONS = 25, /* struct image_socket_option; job */
	IMAGE_NOTE_MESSAGES = 26,       /* struct image_message; job */
	IMAGE_NOTE_RIGHTS = 27,  /* uint32_t: descriptions in messages (SCM_RIGHTS); job */
	IMAGE_NOTE_TCP = 28,     /* struct image_tcp: connections to the outside; job */
	IMAGE_NOTE_SHARING = 29, /* struct image_sharing: one for each process, or none; job */
	IMAGE_NOTE_CGROUPS = 30, /* bytes of /proc/PID/cgroup; process */
	IMAGE_NOTE_DIRECTORIES = 31,     /* struct image_directories: of threads; process */
	IMAGE_NOTE_TERMINAL = 32,        /* struct image_terminal, one; job */
	IMAGE_NOTE_PACKS = 33,           /* struct image_pack; both */
	IMAGE_NOTE_AIO_REQUESTS = 34,    /* struct image_aio_request; process */
	IMAGE_NOTE_OPTIONS = 35,         /* struct image_options, one; job */
	IMAGE_NOTE_RUN_OPTIONS = 36,     /* struct image_run_options, one; job */
	IMAGE_NOTE_FILE_ATTRIBUTES = 37, /* struct image_file_attributes; job */
	IMAGE_NOTE_XATTRS = 38,          /* struct image_xattr; job */
	IMAGE_NOTE_XATTR_VALUES = 39,    /* bytes: their values, one behind the other; job */
	IMAGE_NOTE_CHAIN_NAMES = 40,     /* uint32_t: a string for an entry of CHAIN; process */
	IMAGE_NOTE_SAVE_DIRS = 41,       /* uint32_t: strings (--save-dirs); job */
	IMAGE_NOTE_HASH_TABLES = 42,     /* struct image_hash_table; process */
	IMAGE_NOTE_HASH_SUMS = 43, /* uint64_t: XXH3-64 of the pieces of HASH_TABLES; process */
	IMAGE_NOTE_OWN_SUMS = 44,  /* uint64_t: XXH3-64 of pieces of this file's hashes; both */
	IMAGE_NOTE_MAX = 45,       /* each before it has a row in note_rules (image_meta.c) */
};

/* Files that hold blocks: entry 0 is this one, the others are further ones of the same checkpoint,
 * and those of checkpoints before it. Where CHAIN_NAMES has a string at the same index (not 0), that is
 * the name of another process's file, which stands for "this file's name". */
struct image_chain {
	uint8_t checkpoint_id[16];
	uint32_t name; /* of its directory, beside this one's; a member's: ckpt-NNNNNN/rank-N */
	uint32_t file; /* 0: of this file's name there; else number of a file of kind BLOCKS */
};
IMAGE_SIZE_IS(struct image_chain, 24);

/* How the run was to be saved, and is to be after a restart: where it was not asked for
 * anything there is no such note. What it was asked for besides is in image_job.flags. */
struct image_options {
	uint64_t save_files; /* contents of files up to this size */
};
IMAGE_SIZE_IS(struct image_options, 8);

#define IMAGE_RUN_INCREMENTAL 0x1u
#define IMAGE_RUN_DIRTY_UFFD  0x2u /* what has changed is asked of the kernel */
#define IMAGE_RUN_FORK        0x4u

/* What is to be done about TCP connections to the outside. */
enum image_run_tcp {
	IMAGE_RUN_TCP_REFUSE,
	IMAGE_RUN_TCP_RESET,
	IMAGE_RUN_TCP_KEEP,
	IMAGE_RUN_TCP_MODES,
};

/* The same of what an older reader may leave aside: each by the option of its name, 0 where it
 * means none. */
struct image_run_options {
	uint64_t rate;       /* bytes a second */
	uint64_t fork_limit; /* bytes; all ones: as much as there is room for */
	uint32_t interval_s; /* of periodic checkpoints */
	uint32_t keep;
	uint32_t full_every;
	uint32_t ckpt_signal;
	uint32_t deadline_s;
	uint32_t drain_s;
	uint32_t flags;           /* IMAGE_RUN_* */
	uint32_t tcp;             /* enum image_run_tcp */
	uint32_t compress_method; /* enum image_pack_method; 0: not at all */
	int32_t compress_level;
};
IMAGE_SIZE_IS(struct image_run_options, 56);

#define IMAGE_JOB_PORTABLE    0x1u /* file mappings are stored whole */
#define IMAGE_JOB_INCREMENTAL 0x2u

struct image_job {
	uint8_t job_id[16];    /* the same for all checkpoints of one run and its restarts */
	uint8_t parent_id[16]; /* the checkpoint compared with; zero for a full one */
	uint64_t sequence;     /* number in the directory's name */
	uint64_t depth;        /* incremental checkpoints since the last full one */
	uint64_t realtime_ns, monotonic_ns, boottime_ns; /* clocks when frozen */
	uint64_t pause_ns;                               /* how long the program stood still */
	uint64_t memory_bytes; /* private and shared memory that was looked at */
	uint64_t stored_bytes; /* blocks written into this checkpoint */
	uint32_t flags;
	uint32_t process_count;
	uint32_t hostname, kernel, cpu, version, command; /* strings */
	uint32_t xsave_size;                              /* bytes of an XSAVE area */
	uint64_t xfeatures;                               /* XCR0 */
	/* CPUID words a program may have chosen its code by: leaf 1 ecx, edx; leaf 7.0 ebx,
	 * ecx, edx; leaf 7.1 eax; leaf 0x80000001 ecx, edx. Kernel-only bits are cleared. */
	uint32_t cpuid[8];
	/* Of the kernel it ran under (/proc/sys/kernel/random/boot_id); zero: unknown. */
	uint8_t boot_id[16];
	/* By how much the program's clocks were ahead of that kernel's own: its time namespace.
	 */
	int64_t monotonic_shift_ns, boottime_shift_ns;
};
IMAGE_SIZE_IS(struct image_job, 200);

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

struct image_fd {
	int32_t fd;
	uint32_t cloexec;
	uint32_t description; /* index in IMAGE_NOTE_DESCRIPTIONS */
	uint32_t reserved;
};
IMAGE_SIZE_IS(struct image_fd, 16);

/* A descriptor of a thread that has left the table of its process (unshare(2) with
 * CLONE_FILES); ascending for each thread, which all begin with one of number -1 that stands
 * for none. */
struct image_thread_fd {
	int32_t tid, fd;
	uint32_t cloexec;
	uint32_t description; /* index in IMAGE_NOTE_DESCRIPTIONS */
};
IMAGE_SIZE_IS(struct image_thread_fd, 16);

/* One open file description, shared by the descriptors that name it. Of the kinds marked L
 * args[0] is a string: the locks held, a line each: "FLOCK WRITE 0 EOF 0", that is FLOCK, POSIX
 * or OFDLCK, READ or WRITE, first and last byte, and for POSIX locks the process. */
enum image_description_kind {
	IMAGE_FD_REGULAR =
		1, /* L; size is the file's at the checkpoint; args[1]: the lower half has it */
	IMAGE_FD_DIRECTORY, /* L */
	IMAGE_FD_DEVICE, /* a character device without state (null, zero, ...); args[0]: rdev */
	IMAGE_FD_INHERITED,  /* args[0]: 0, 1 or 2: taken from trecr-restart's; args[1]:
			      * enum image_inherited */
	IMAGE_FD_UNLINKED,   /* L; object: the contents */
	IMAGE_FD_MEMFD,      /* L; object: the contents */
	IMAGE_FD_PIPE,       /* object: the pipe; args[0]: 0 read end, 1 write end, 2 both,
			      * args[1]: uid | gid << 32 */
	IMAGE_FD_FIFO,       /* path; object; args[0] as for a pipe */
	IMAGE_FD_EVENTFD,    /* args[0]: count, args[1]: semaphore, args[2]: id */
	IMAGE_FD_TIMERFD,    /* args[0]: clock, [1]: left ns, [2]: interval ns, [3]: ticks,
			      * [4]: settime flags, [5]: when it expires, on its clock */
	IMAGE_FD_PATH,       /* O_PATH: path; args[0]: type of the file, as in st_mode */
	IMAGE_FD_EPOLL,      /* args[0]: string, a line "FD EVENTS DATA" (decimal, hex, hex) for
			      * each descriptor watched */
	IMAGE_FD_SIGNALFD,   /* args[0]: signal mask */
	IMAGE_FD_PTY_MASTER, /* path of the ptmx; object: the terminal */
	IMAGE_FD_PTY_SLAVE,  /* object: the terminal; args[0]: 1: opened as /dev/tty */
	IMAGE_FD_SOCKET,     /* object: bytes of the messages; args[0]: its number in
			      * IMAGE_NOTE_SOCKETS, from 1, args[1]: uid | gid << 32 */
	IMAGE_FD_MQUEUE,     /* object: the POSIX message queue */
	IMAGE_FD_INOTIFY,    /* args[0]: string, a line "WD MASK PATH" (decimal, hex) for each
			      * watch; args[1]: bytes of events that were not read, [2]: the next
			      * number, 0: not known; object: the events */
	IMAGE_FD_PIDFD,      /* args[0]: the process; 0: it has ended */
	IMAGE_FD_PROCESS_FILE,  /* a file or directory of /proc of one of the processes: path */
	IMAGE_FD_FANOTIFY,      /* args[0]: string, a line "WHERE FLAGS MASK IGNORED PATH" (hex)
				 * for each mark; [1]: flags, [2]: of events, as of
				 * fanotify_init(2) */
	IMAGE_FD_URING,         /* object: the ring */
	IMAGE_FD_UNLINKED_FIFO, /* object, args[0], args[1] as for a pipe */
	IMAGE_FD_REMOVED,       /* L; a directory: path and object */
	IMAGE_FD_ENDED_FILE,    /* a file or directory of /proc of a process or thread that has
				 * ended: path */
	IMAGE_FD_NAMESPACE,     /* of the process itself: path, as below /proc/PID/ns */
	IMAGE_FD_KINDS,
};

enum image_owner {
	IMAGE_OWNER_BY_SIGN,   /* a process, or a negative process group */
	IMAGE_OWNER_THREAD,    /* a single thread: its id */
	IMAGE_OWNER_OUR_GROUP, /* the process group of trecr itself */
};

struct image_description {
	uint32_t kind;  /* enum image_description_kind */
	uint32_t flags; /* open(2) flags of F_GETFL */
	uint64_t position;
	uint64_t size, dev, inode;
	uint64_t mtime_ns;
	uint32_t path;         /* string */
	uint32_t object;       /* index in IMAGE_NOTE_OBJECTS + 1 */
	int32_t owner;         /* F_SETOWN: pid, negative process group */
	uint16_t owner_signal; /* F_SETSIG */
	uint16_t owner_kind;   /* enum image_owner */
	uint64_t args[6];
};
IMAGE_SIZE_IS(struct image_description, 112);

/* Contents that are in no process's private memory, saved once in the job file. The flags of
 * SHARED_ANON, MEMFD and UNLINKED are the logarithm of the size of their pages where those are
 * huge pages of hugetlbfs, else 0. */
enum image_object_kind {
	IMAGE_OBJECT_SHARED_ANON = 1, /* MAP_SHARED | MAP_ANONYMOUS */
	IMAGE_OBJECT_MEMFD,           /* args[0]: seals, args[1]: uid | gid << 32 */
	/* A file without a name: its last one; args[0]: other names, args[1]: uid | gid << 32
	 */
	IMAGE_OBJECT_UNLINKED,
	/* size: bytes in it; args[0]: capacity; args[1]: number of packets, whose lengths
	 * (uint32_t) follow the bytes; 0: a stream of bytes */
	IMAGE_OBJECT_PIPE,
	/* A pseudo-terminal; inode: its number. Contents (of size bytes): struct image_pty */
	IMAGE_OBJECT_PTY,
	IMAGE_OBJECT_SOCKET, /* bytes of all messages that wait to be read, in their order */
	/* System V: inode: id, dev: key, args[0]: uid | gid << 32, flags: IMAGE_SYSV_*; the
	 * mode's further bits are the kernel's (SHM_DEST, SHM_LOCKED) */
	IMAGE_OBJECT_SHM, /* contents; args[1]: as the flags of MEMFD */
	IMAGE_OBJECT_SEM, /* args[1]: number; their values (uint16_t), struct image_sem_undo */
	IMAGE_OBJECT_MSG, /* args[1]: bytes it may hold; struct image_queue_message, each with
			   * its text */
	/* POSIX; flags: whether it has a name, args[0]: uid | gid << 32, args[1]: messages at
	 * most | bytes of one << 32; struct image_queue_message (type: priority), each with its
	 * text */
	IMAGE_OBJECT_MQUEUE,
	/* A file of a tmpfs that is mapped shared: POSIX shared memory;
	 * args[1]: uid | gid << 32 */
	IMAGE_OBJECT_SHM_FILE,
	IMAGE_OBJECT_URING, /* struct image_ring, and what it says */
	/* A file with a name, as it was; flags: IMAGE_FILE_*, args[0]: when it was changed
	 * (nanoseconds), args[1]: uid | gid << 32 */
	IMAGE_OBJECT_FILE,
	/* A directory that has been removed; args[0]: the object that its ".." leads to, 0:
	 * that has not been removed, args[1]: uid | gid << 32 */
	IMAGE_OBJECT_DIRECTORY,
	IMAGE_OBJECT_EVENTS, /* of inotify: struct inotify_event, each with its name */
	IMAGE_OBJECT_KINDS,
};

struct image_object {
	uint32_t kind;
	uint32_t name; /* string */
	uint64_t size; /* bytes */
	uint64_t dev, inode;
	uint32_t mode, flags;
	uint64_t args[2];
};
IMAGE_SIZE_IS(struct image_object, 56);

/* What else an object has that a restart makes anew: flags are FS_*_FL of <linux/fs.h>, the hint is
 * a value of F_SET_RW_HINT. An extended attribute may be of a file with a name, too. */
struct image_file_attributes {
	uint32_t object, inode_flags, write_hint, reserved;
	int64_t atime_ns, mtime_ns;
};
IMAGE_SIZE_IS(struct image_file_attributes, 32);

struct image_xattr {
	uint32_t object, name /* string */, size, reserved;
};
IMAGE_SIZE_IS(struct image_xattr, 16);

/*
 * An io_uring; its SQEs, CQEs and array of indices (without IORING_SETUP_NO_SQARRAY), of all
 * entries, follow, and to the end a line for each thing that is registered with it, and for
 * each completion that has found no room:
 *
 *	files COUNT		file SLOT FD
 *	buffers COUNT		buffer SLOT ADDRESS SIZE	(hexadecimal)
 *	eventfd FD		ring TID SLOT
 *	overflow USER_DATA RESULT FLAGS				(hexadecimal)
 *	attach FD		it shares the thread of the ring FD
 *	request NUMBER [LEFT]	its submission of this number (from 0) waits for something;
 *				a time-out until some time: for so many nanoseconds more
 */
struct image_ring {
	uint32_t flags; /* IORING_SETUP_*: the flags that matter to the program */
	uint32_t sq_entries, cq_entries;
	uint32_t sq_head, sq_tail, cq_head, cq_tail;
	uint32_t sq_dropped, cq_flags, cq_overflow;
	int32_t tid; /* the thread that may submit to it, or one of its process */
	uint32_t sq_cpu;
	uint32_t reserved[4];
};
IMAGE_SIZE_IS(struct image_ring, 64);

/* What is under way in a pseudo-terminal follows: struct image_pty_line line_count times, input
 * bytes (what the slave will read), output bytes (what the master will read). */
struct image_pty {
	uint32_t flags; /* IMAGE_PTY_* */
	uint32_t uid, gid, mode;
	uint16_t rows, columns, x_pixels, y_pixels;
	uint8_t termios[44]; /* struct termios2 of <asm/termbits.h> */
	uint32_t line_count, input, output;
	uint32_t reserved[2];
};
IMAGE_SIZE_IS(struct image_pty, 88);

#define IMAGE_PTY_OPENED    0x01u /* the slave, at some time */
#define IMAGE_PTY_HUNG_UP   0x02u /* there is no master any more, and nothing else but this */
#define IMAGE_PTY_LOCKED    0x04u /* against opening, TIOCSPTLCK */
#define IMAGE_PTY_PACKETS   0x08u /* packet mode, TIOCPKT */
#define IMAGE_PTY_EXCLUSIVE 0x10u /* TIOCEXCL */
#define IMAGE_PTY_STOPPED   0x20u /* the output, by ^S, */
#define IMAGE_PTY_SUSPENDED 0x40u /* or by tcflow(3) */

/* The controlling terminal that the program shares with the shell that started it. */
struct image_terminal {
	uint32_t flags; /* IMAGE_TERMINAL_* */
	uint16_t rows, columns, x_pixels, y_pixels;
	/* struct termios2 of <asm/termbits.h>: as the program has set it, and as it was before
	 * the program */
	uint8_t program[44], original[44];
};
IMAGE_SIZE_IS(struct image_terminal, 100);

/* How a descriptor has what is behind a standard stream of the shell that started the program.
 */
enum image_inherited {
	IMAGE_INHERITED_SHARED, /* the same open file */
	IMAGE_INHERITED_TTY,   /* the terminal, opened as /dev/tty; args[0]: 3: behind no stream
				*/
	IMAGE_INHERITED_AGAIN, /* the terminal, opened by its name */
};

#define IMAGE_TERMINAL_STREAM(n) (1u << (n)) /* it is behind standard stream n; */
#define IMAGE_TERMINAL_STREAMS   0x07u
#define IMAGE_TERMINAL_OPENED    0x08u /* the program has opened /dev/tty */
#define IMAGE_TERMINAL_ORIGINAL  0x10u /* `original` is known */

/* Input is read by lines, as it was cut. */
struct image_pty_line {
	uint32_t size;
	uint32_t end; /* IMAGE_PTY_LINE_* */
};
IMAGE_SIZE_IS(struct image_pty_line, 8);

#define IMAGE_PTY_LINE_OPEN  0u /* there may be more to come */
#define IMAGE_PTY_LINE_WHOLE 1u /* its last byte has ended it */
#define IMAGE_PTY_LINE_EOF   2u /* ended by an end of file (^D), which is no byte of it */

#define IMAGE_FILE_ABSENT     0x1u  /* there was none of this name */
#define IMAGE_FILE_IF_MISSING 0x2u  /* put back only where there is none of this name */
#define IMAGE_FILE_NOT_SAVED  0x4u  /* it was gone when it was to be read: left alone */
#define IMAGE_FILE_DIRECTORY  0x8u  /* of such files: made again where they miss it */
#define IMAGE_FILE_SET        0x10u /* such a directory: files that came later are moved aside */
#define IMAGE_FILE_LINK       0x20u /* a symbolic link: args[0] is the string that it holds */

#define IMAGE_SYSV_GUESSED 0x1u /* of older images: not restored, as it may be another's */
#define IMAGE_SYSV_UNUSED  0x2u /* nobody had used it yet */

struct image_queue_message {
	uint64_t type;
	uint64_t size; /* of the text that follows */
};
IMAGE_SIZE_IS(struct image_queue_message, 16);

/* What the end of process @pid adds to a semaphore (SEM_UNDO). */
struct image_sem_undo {
	int32_t pid;
	uint16_t number;
	int16_t undo;
};
IMAGE_SIZE_IS(struct image_sem_undo, 8);

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

#include "ckpt/image_sockets.h"

#endif
