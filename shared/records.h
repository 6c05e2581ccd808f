/*
 * records.h - what the upper half keeps about the lower one: read by the stubs that write it,
 * by the lower half, by the supervisor and trecr-inspect, from outside and out of an image.
 *
 * All of it lies at RECORDS_WINDOW (shared/address_windows.h) in memory of the upper half, so that it
 * is in an image by itself and at the same address after a restart: records point to each other
 * by plain pointers. Fixed-width types only; the code that writes it uses neither the program's
 * malloc nor its stdio.
 *
 * Children of fork(2) inherit the first page; everything else is wiped there by the kernel,
 * as they have no lower half.
 */
#ifndef SHARED_RECORDS_H
#define SHARED_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "shared/address_windows.h"

#define RECORDS_MAGIC   0x7364726f63657274 /* "trecords" */
#define RECORDS_VERSION 15

#define RECORDS_CHUNK (2ul << 20) /* bytes of the arena that are mapped together */

/* Descriptors of the lower half, from its base on; a bit each. */
#define RECORDS_FDS 8192

/* At RECORDS_WINDOW. */
struct records_saved {
	uint64_t magic;
	uint32_t version;
	int32_t fd_base; /* of the lower half, or of an ancestor's */
	uint64_t fds[RECORDS_FDS / 64];
	uint64_t space; /* as in lower_table, which children of fork find empty */
};

/*
 * For a supervisor, which stops the process from outside: how to tell where a thread is, and to
 * stop a thread on its way out of the lower half (doc/split-process.md, "Freeze").
 * Addresses are of upper code and data.
 */
struct crossing_info {
	uint64_t trap;          /* put in place of a return address; it makes a system call: */
	uint64_t trapped;       /* behind which the thread is here, its result in r10 */
	int64_t busy_offset;    /* upper FS base + this: not 0, it must not be stopped here */
	int64_t current_offset; /* upper FS base + this: its crossing_thread pointer */
	int64_t slot_offset;    /* the same for the lower FS base a thread borrows */
	/* In struct crossing_thread: pointer to itself, to the end of the side stack, start of
	 * the side stack, and where the return address goes that `trap` has replaced. */
	uint64_t self_offset, top_offset, entries_offset, original_offset;
	/* In an entry: return address, stack pointer; and an entry's size. */
	uint64_t return_offset, rsp_offset, entry_size;
	uint64_t depth; /* most entries that there are */
	/* void (void): bring the lower half up again in a process that comes from an image; see
	 * records.result. */
	uint64_t restart;
	/* For *records.print_cross: as crossing(), but that records.printed is printed where
	 * the call lets out what device code has printed. */
	uint64_t print;
};

/* What device code has printed while a checkpoint was taken. */
struct records_text {
	uint64_t size, room;
	char text[];
};

enum records_lower {
	RECORDS_NONE,   /* no lower half yet */
	RECORDS_COMING, /* being brought up */
	RECORDS_UP,
	RECORDS_FAILED, /* it could not be brought up */
};

/* What a lower half is brought up with. Strings in the arena. */
struct records_start {
	const char *core, *runtime;
	const char *ldso, *library_path; /* may be NULL */
	char *const *environment;
};

/* Whose ABI an MPI library has. */
enum mpi_abi {
	MPI_ABI_NONE,
	MPI_ABI_MPICH,
	MPI_ABI_OPENMPI,
	MPI_ABI_NAMED, /* either: the user has named a file */
};

/* At RECORDS_LAUNCHER. Variables of the launcher that begins a restart (launcher_variables.h), for
 * info.restart to put in the place of its variables in records_start. In a process that has no lower half yet the supervisor
 * maps the arena's first chunk for it, and all else there is zero. */
struct records_launcher {
	uint32_t given; /* not 0: they are to be taken */
	uint32_t size;
	uint32_t
		mpi; /* enum mpi_abi of the MPI library that is to be loaded; 0: the former one */
	char names[0x1000]; /* of that library, each ended by 0, and an empty one at the end */
	char text[0x6ff4];  /* each ended by 0 */
};

/* At RECORDS_LIVE. */
struct records {
	uint64_t magic;
	uint32_t version;
	uint32_t lower; /* enum records_lower */
	struct crossing_info info;
	struct records_start start;
	uint64_t mapped, used; /* bytes of the window from its start on */
	uint32_t lock;         /* of these two */
	int32_t helper; /* thread id, as the process sees it, of the helper for callbacks; or 0
			 */
	uint32_t nvml_initialised; /* how often nvmlInit was called, less nvmlShutdown */
	uint32_t nvml_flags;       /* of the first of those */
	int32_t result;            /* of info.restart: 0, or -1 and why */
	/* Before info.restart, by the supervisor: the GPU driver's library is another build than at
	 * the checkpoint. */
	uint32_t another_driver;
	char failure[256];
	struct mpi_state
		*mpi; /* shared/mpi/mpi_state.h; NULL: none of its calls has been made */
	struct records_text *printed, *printed_spare;
	void (**print_cross)(
		void); /* crossing_library.cross of who may print; NULL: none yet */
	uint32_t
		device_awaited; /* not 0: the agent waits, and may put something into printed */
};

_Static_assert(sizeof(struct records_saved) <= RECORDS_LIVE - RECORDS_WINDOW, "");
_Static_assert(sizeof(struct records) <= RECORDS_LAUNCHER - RECORDS_LIVE, "");
_Static_assert(sizeof(struct records_launcher) <= RECORDS_CUDA - RECORDS_LAUNCHER, "");

#define RECORDS_SAVED ((struct records_saved *)RECORDS_WINDOW)
#define RECORDS       ((struct records *)RECORDS_LIVE)

#endif
