/*
 * shared_window.h - memory that ranks share in a window of MPI (MPI_Win_allocate_shared): a file in /dev/shm that the
 * stub makes, all ranks map, and that has no name any more when they use it (stubs/mpi/windows_shared.c). It is the
 * program's memory, at addresses of the upper half. What is behind the head, which begins with a page of its own, are
 * the parts of the ranks, in their order. Each page belongs to one rank, whose image has it
 * (supervisor/fd/shared_window.h). What a restart makes again under another name is found by the first digits of it.
 */
#ifndef SHARED_SHARED_WINDOW_H
#define SHARED_SHARED_WINDOW_H

#include <stdint.h>

#define SHARED_WINDOW_PREFIX "/dev/shm/trecr-window-"
#define SHARED_WINDOW_DIGITS 32 /* random, hexadecimal */
#define SHARED_WINDOW_NAME   64 /* bytes, the end included */

#define SHARED_WINDOW_MAGIC 0x776f646e69776d73 /* "smwindow" */
#define SHARED_WINDOW_PAGE  4096ul
#define SHARED_WINDOW_RANKS 4096 /* at most */

struct shared_window_rank {
	uint64_t
		from; /* the offset of its first page in the file; its last one ends where the next rank's begin */
	int32_t rank; /* in MPI_COMM_WORLD */
	uint32_t reserved;
};

struct shared_window {
	uint64_t magic;
	uint32_t ranks;
	uint32_t
		freed; /* MPI_Win_free has been called: who still maps it, as a child of fork(2) may, saves all of it */
	uint64_t token; /* by which ranks see that they share it (lower/mpi/windows_replay.c) */
	struct shared_window_rank rank[];
};

static inline uint64_t shared_window_pages(uint64_t bytes)
{
	return (bytes + SHARED_WINDOW_PAGE - 1) & ~(SHARED_WINDOW_PAGE - 1);
}

static inline uint64_t shared_window_head(uint32_t ranks)
{
	return shared_window_pages(
		sizeof(struct shared_window) + ranks * sizeof(struct shared_window_rank));
}

#endif
