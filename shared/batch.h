/*
 * batch.h - what the supervisor and the loader share: a list of system calls to be made.
 *
 * The loader is all of trecr that runs inside a target at restart. It knows nothing of images
 * or policy: it makes the calls of a batch one after the other and stops at the first that
 * does not go as the supervisor said it must. Addresses are the target's.
 *
 * This header stands alone: the loader has no libc.
 */
#ifndef SHARED_BATCH_H
#define SHARED_BATCH_H

#include "shared/address_windows.h"

/* Offsets of the entry points in the loader's binary: each one a jump at a fixed place. */
#define LOADER_ENTRY_BATCH   0x00 /* rdi: struct batch */
#define LOADER_ENTRY_SYSCALL 0x10 /* syscall; int3 */
#define LOADER_ENTRY_TILES   0x20 /* use AMX; syscall; int3 */

/* Where the loader and its batches are while they work: the beginning of what is the lower half's window later
 * on (64 GiB of 1 TiB). No program may have memory there, and some choose
 * addresses at random (MPICH, for windows of shared memory), so it is no larger than it must
 * be. */
#define LOADER_RANGE      ((unsigned long)LOWER_WINDOW)
#define LOADER_RANGE_SIZE 0x1000000000ul

/* The end of user memory with 47 bits, less the page that no mapping may use. */
#define LOADER_ADDRESS_END 0x7ffffffff000ul

/* Descriptors from here on are the lower half's. */
#define LOWER_FD_BASE 0x40000000

#ifndef __ASSEMBLER__

enum batch_check {
	BATCH_NO_ERROR = 0, /* any result that is no error */
	BATCH_EQUALS,       /* the result must be `expect` */
	BATCH_ANY,          /* whatever comes: the supervisor looks at the result */
	BATCH_WHOLE,        /* pread64: repeat until all bytes are there */
	/* The same of blocks (ckpt/image.h) at args[1], which are then compared, where they are
	 * now, with the hashes at args[4], by a unit of args[5]. Where a block differs, the
	 * result is -BATCH_DAMAGED and `expect` its address. */
	BATCH_BLOCKS,
	/* Nothing is read: blocks that should be at args[1] already are compared. */
	BATCH_THERE,
	/* BATCH_WHOLE and BATCH_BLOCKS of memory that the batch's copier is for. */
	BATCH_COPY_WHOLE,
	BATCH_COPY_BLOCKS,
	/* Make the batch's copier, for args[1] mappings: their addresses and ends are at args[0]. Where
	 * that cannot be done, memory is read into its place: no error. */
	BATCH_COPIER,
	BATCH_THREAD, /* clone3: the new thread runs the batch named on top of its stack */
};

/* The processor's unit that hashes are worked out by. */
enum batch_unit {
	BATCH_SSE2 = 0,
	BATCH_AVX2,
	BATCH_AVX512,
};

#define BATCH_DAMAGED 74 /* EBADMSG, which pread64 does not give */

struct batch_call {
	unsigned long nr;
	unsigned long args[6];
	unsigned long check;  /* enum batch_check */
	unsigned long expect; /* BATCH_BLOCKS, BATCH_THERE: out */
	long result;          /* out */
};

enum batch_end {
	BATCH_TRAP = 0, /* int3: the supervisor takes over */
	BATCH_EXIT,     /* exit(2) of the thread, status 0 or 1 */
};

/* What fills missing pages (loader/copier.h). One for all batches that do so at the same time. */
struct batch_copier {
	long fd;               /* -1: not made */
	unsigned long batches; /* that have not come to their end yet */
	unsigned long buffers,
		buffers_size; /* where the memory of all their buffers is to be */
};

/* Bytes that are read, and compared, at a time; the size of a buffer. */
#define BATCH_PIECE (128ul << 10)

struct batch {
	unsigned long count;
	unsigned long end;           /* enum batch_end */
	struct batch_copier *copier; /* or NULL */
	unsigned long buffer;        /* its buffer of those */
	unsigned long done;          /* out: calls that went well; == count when all did */
	struct batch_call calls[];
};

#endif /* __ASSEMBLER__ */

#endif
