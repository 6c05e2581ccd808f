/*
 * window_records.h - windows, memory that other ranks reach (doc/decisions/mpi-windows.md): what the stub records of
 * them (stubs/mpi/windows.c), for the lower half to make them again (lower/mpi/windows_replay.c).
 *
 * Below, a window is in one passive epoch from its making to its end. The program's epochs are the stub's: its
 * locks and what ranks post to each other are words of memory in the upper half, which others change through another
 * window of the library's, that all windows of the same ranks share.
 */
#ifndef SHARED_MPI_WINDOW_RECORDS_H
#define SHARED_MPI_WINDOW_RECORDS_H

#include <stdint.h>

/* The words of each rank. Who wants a lock takes the next ticket, and has the lock when it is the ticket's turn:
 * readers let the next ticket read when they begin, and all let it write when they end. */
enum mpi_window_word {
	MPI_WORD_TICKETS, /* that were taken */
	MPI_WORD_READS,   /* the ticket whose turn it is to read */
	MPI_WORD_WRITES,  /* and to read or write */
	MPI_WORD_OF_RANKS /* how often each rank has posted to this one, then how often it has completed */
};
#define MPI_LOCK_WORDS MPI_WORD_OF_RANKS

/* What members tell each other at checkpoints are their numbers; this one at the end. */
#define MPI_LAST_DRAIN_ROUND UINT64_MAX

/* Tags on the communicator of a struct mpi_window_control. MPI allows 32767 at least. */
enum {
	MPI_GREETING_TAGS = 0,   /* at checkpoints: one for each round of a meeting */
	MPI_COPY_TAG = 0x40,     /* of messages to oneself, by one thread at a time */
	MPI_MEETING_TAGS = 0x80, /* from here on so many for each place */
	MPI_MEETING_ROUNDS = 32,
};

/*
 * By what the windows of a group of ranks work: a window of the library's over the words of all of them, and a
 * communicator of these ranks. It has places for so many windows, which the group's first rank gives them; when all are
 * taken, the group gets another one with more places. It ends with the last window in it (stubs/mpi/window_control.h).
 */
#define MPI_PLACES_MIN 8
#define MPI_PLACES_MAX 512

struct mpi_window_control {
	struct mpi_window_control *next; /* in mpi_state, or of the free ones */
	uint64_t number;                 /* the same in all ranks, and of no other */
	int32_t real, comm;              /* in this library; 0: not made again yet */
	int32_t rank, size;
	uint32_t places;
	/* The first rank's: how many windows there are, and which places are taken; and no more are given, as the last window
	 * ends. */
	uint32_t used, ending;
	uint64_t taken[MPI_PLACES_MAX / 64];
	uint64_t room; /* bytes that there is memory for at `words` */
	uint64_t *words;
};

enum mpi_window_lock {
	MPI_UNLOCKED,
	MPI_LOCKED_ALONE,
	MPI_LOCKED_SHARED,
	MPI_LOCKED_UNCHECKED, /* the program says that no other rank does */
};

/* What this rank has to do with another one. */
struct mpi_window_target {
	uint8_t lock;    /* enum mpi_window_lock: that it has there */
	uint8_t started; /* the target is of the group of MPI_Win_start */
	uint64_t posts;  /* how many of its posts this rank has waited for */
	uint64_t completions;
	/* A lock that is being taken. */
	uint32_t phase;
	uint64_t ticket, add[MPI_LOCK_WORDS], got[MPI_LOCK_WORDS];
	struct mpi_request *request;
};

enum mpi_window_access {
	MPI_NO_ACCESS,
	MPI_FENCED, /* and no operation since */
	MPI_FENCE_ACCESS,
	MPI_STARTED,
	MPI_LOCKED,
	MPI_LOCKED_ALL,
};

/* Memory that is attached to a dynamic window. */
struct mpi_region {
	struct mpi_region *next;
	void *base;
	int64_t size;
};

/* What a rank has of the memory that ranks share: where it begins, behind the beginning of all. */
struct mpi_window_part {
	int64_t bytes, unit;
	uint64_t offset;
};

struct mpi_window {
	struct mpi_window *next; /* of the free list */
	uint32_t room;           /* ranks that there is memory for */
	uint32_t place;          /* in `control` */
	struct mpi_window_control *control;
	int32_t rank, size;
	int32_t flavor, model, unit; /* attributes: the program has their addresses */
	int64_t bytes;
	void *base;
	int64_t large_unit; /* the same as `unit`, which may be too small */
	void *memory;       /* that goes with the window, or NULL */
	uint64_t mapped;
	uint64_t shared; /* `memory` is that of all ranks (shared/shared_window.h); else 0 */
	struct mpi_window_part *parts; /* of it, by rank */
	struct mpi_region *regions;    /* the last one first */
	uint32_t access;               /* enum mpi_window_access */
	uint32_t exposed;              /* MPI_Win_post has been called */
	uint32_t locks; /* how many targets it has locked, MPI_PROC_NULL included */
	uint32_t null_locked;
	int32_t started_count, posted_count;
	int32_t *started, *posted; /* ranks of the groups of MPI_Win_start and MPI_Win_post */
	struct mpi_window_target *targets;
	uint64_t *words; /* this rank's, of mpi_control_words(), in `control` */
};

/* How many a window of so many ranks has. */
static inline uint64_t mpi_control_words(int32_t size)
{
	return MPI_WORD_OF_RANKS + 2ul * size;
}

/* Where those of a place begin in each rank's memory. */
static inline uint64_t mpi_control_word(int32_t size, uint32_t place)
{
	return place * mpi_control_words(size);
}
#endif
