/*
 * image.h - what is on disk: here the layout of files, their notes by number, and what is said of a whole job. The
 * structures of most notes are in image_process.h, image_objects.h and image_sockets.h, which it includes. Nothing else
 * defines a byte of an image.
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

#include "ckpt/image_process.h"
#include "ckpt/image_objects.h"
#include "ckpt/image_sockets.h"

#endif
