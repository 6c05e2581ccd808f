/*
 * table.h - what the two halves of a process share: struct lower_table at LOWER_SHARED.
 *
 * The lower half (trecr-lower, a program on its own libc) serves requests of the upper half on
 * one thread; between requests the upper half calls straight into its libraries. Either
 * side may be built on any libc, so nothing here is a libc's type.
 */
#ifndef SHARED_TABLE_H
#define SHARED_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "shared/share.h"

#define LOWER_SPARES   4
#define LOWER_QUESTION 32

/* A thread of the lower half that sleeps and lends its thread-local storage, and with it its
 * identity, to a thread of the upper half. */
struct lower_parked {
	uint64_t fs;       /* its FS base */
	void **upper_slot; /* its crossing_thread pointer, where handlers and callbacks find it
			    */
	uint32_t leave;    /* set to 1 and woken: it ends, and its destructors run */
	struct lower_parked *next; /* of all there are; for the lower half */
};

enum lower_request {
	LOWER_IDLE,
	LOWER_PARK,        /* make a parked thread: out parked */
	LOWER_LIBRARY,     /* load a library: in library; out result */
	LOWER_ENVIRONMENT, /* take over what the records say of it; out result */
	LOWER_CONNECTION,  /* take over the connection to the launcher (PMI_FD); out result */
	LOWER_SHARE, /* from now on other processes may ask for what this one shares (share_name); out result */
	LOWER_FETCH, /* ask the owner of what is shared: in share_request, out share_reply, share_fd, result */
	LOWER_EXIT, /* the program exits: what the MPI library does then, where it has the connection to the launcher still */
	LOWER_ASK,  /* ask the supervisor of this process: in question; out result */
	LOWER_DONE, /* a request, not an order */
	/* Orders (struct lower_order). */
	LOWER_DRAIN, /* wait until the devices have done all that was asked of them */
	LOWER_REST,  /* the same for what the last drain waited for in vain: threads may run */
	LOWER_SAVE,  /* device memory into the staging buffer, as the transfers say */
	LOWER_LOAD,  /* and back */
	LOWER_HASH, /* hashes of device memory into it, 16 bytes for each block; or into a snapshot's memory, if
		       the offset is an address in there */
	LOWER_RESERVE, /* device memory for a snapshot, at the transfers' addresses, which LOWER_SAVE reads */
	LOWER_SNAPSHOT, /* copy device memory into it: the transfers' offsets are addresses in there */
	LOWER_RELEASE, /* give it back */
	LOWER_MESSAGES, /* look for messages under way; if `count` is 1, receive what nobody has asked for */
	LOWER_CONNECT, /* make a socket that the connection to a launcher can be sent to */
	LOWER_AGREE, /* after LOWER_DRAIN of all processes: what it has of others can be restored */
	LOWER_REPLAY, /* make everything in the records again, but for what depends on other processes; */
	LOWER_REPLAY_REST, /* and that, when all have done so */
	LOWER_TRY, /* both, but nothing that takes much memory of a device or the host */
};

enum lower_result {
	LOWER_OK,
	LOWER_FAILED,
	LOWER_AGAIN,    /* something is half done: in a moment it may be otherwise */
	LOWER_PENDING,  /* likewise, and it takes as long as the program, or a device, takes */
	LOWER_RESTLESS, /* the devices have not come to rest */
	LOWER_NO_ROOM,  /* of LOWER_TRY: others use the devices, the program among them */
	LOWER_UNABLE,   /* of LOWER_HASH: the memory has to be read */
};

/* Memory at @address of device number @device to or from the staging buffer at @offset. */
struct lower_transfer {
	uint64_t address, size;
	uint64_t offset; /* LOWER_ZERO: it is to be zero (LOWER_LOAD only) */
	uint32_t device, reserved;
};

#define LOWER_ZERO UINT64_MAX

#define LOWER_TRANSFERS 512

#define LOWER_DEVICES 16

#define LOWER_NOTICES 4096

/* What the user has allowed or chosen for a restart. */
enum lower_gpu_choice {
	LOWER_GPU_OTHER = 1,  /* another build of the driver, or another model of a device */
	LOWER_GPU_MAPPED = 2, /* which device takes the place of which */
};

/*
 * What the supervisor has the lower half do while all threads of the upper half are stopped. It
 * fills this in from outside, `number` last, writes to `order_fd` (borrowed by pidfd_getfd(2)),
 * and waits until `done` is that number; an event at `done_fd` says when to look. An event
 * alone says nothing: it may be of an order that was given up before. All in the lower half's
 * memory: the upper half takes no part, and when the supervisor dies in between nothing has to
 * be put back.
 */
struct lower_order {
	uint32_t number;   /* of this order, another one each time */
	uint32_t done;     /* number of the last order that has been carried out */
	uint32_t given_up; /* number of the last order that is not waited for any more */
	uint32_t request;  /* enum lower_request */
	int32_t result;    /* enum lower_result */
	char failure[256];
	uint64_t
		patience_ns; /* how long the devices may take to come to rest, or other ranks to come (LOWER_MESSAGES) */
	uint64_t session;    /* of LOWER_DRAIN: the checkpoint's own number */
	uint32_t gpu_choice; /* of restarts: enum lower_gpu_choice, bits */
	uint32_t count;
	struct lower_transfer transfers[LOWER_TRANSFERS];
	char notices[LOWER_NOTICES]; /* out, when it has succeeded: lines for the user */
};

/* A library of which the upper half has a stub. */
struct lower_library {
	const char *soname;
	const char *names; /* functions, each ended by 0, and an empty one at the end */
	void **targets;    /* out: address of each; what is not there gets `missing` */
	void *missing;
	uintptr_t start, end; /* out: where the library lies */
	int huge_code; /* to be put on huge pages: a copy for each process (lower/huge_code.c)
			*/
	/* After a restart it has to have each function that it had, as the program may hold the
	 * address of its entry point. */
	int keeps_functions;
};

/* A call that upper code is to make for a lower thread. */
struct lower_callback {
	struct lower_callback *next;
	long (*function)(long, long, long, long, long, long);
	long args[6];
	long result;
	uint32_t done;
};

struct lower_table {
	/* Kept where they are, so that halves of different builds can say that they are. */
	uint32_t size;  /* of this structure, as who brought the lower half up knows it */
	uint32_t state; /* 0: not up yet, 1: ready, 2: it has failed */
	char failure[256];

	/* Filled by the stub that brings the lower half up, before its first instruction. */
	int fd_base;
	uint64_t space; /* address of struct space_list[SPACE_PARTS]: what memory is whose */
	struct core_functions *core;

	/* Filled by the lower half before `state` leaves 0. */
	int64_t upper_slot_offset; /* FS base + this: a lower thread's crossing_thread pointer
				    */
	const char *libc_version;
	/* Upper code behind a lower function pointer is called by upcall (stubs/crossing); on a
	 * thread that is the lower half's own, through this. */
	long (*call_upper)(void *function, const long args[6]);

	/* Counted up and woken for the lower half to look at what follows. */
	uint32_t bell;

	/* One request at a time, under the upper half's lock. */
	uint32_t request; /* enum lower_request */
	struct lower_parked *parked;
	struct lower_library *library;
	int result;

	/* Event descriptors: written to when there is an order, and when it is done. */
	int order_fd, done_fd;
	struct lower_order order;
	/* Shared memory that device memory passes through (LOWER_SAVE, LOWER_LOAD): made by the
	 * first such order, which may be without transfers. */
	int staging_fd; /* a memfd; 0: not made yet */
	uint64_t staging_size;

	/* From LOWER_RESERVE to LOWER_RELEASE: 1, and how much memory of each device the snapshot
	 * has; threads of the upper half may wait until it is 0. */
	uint32_t snapshot;
	uint64_t snapshot_size[LOWER_DEVICES];
	/* A pipe's end for the supervisor to borrow before LOWER_SNAPSHOT: when it is closed,
	 * as it is when the supervisor ends, the snapshot is given back. */
	int snapshot_fd;

	/* Of LOWER_SHARE and LOWER_FETCH. */
	uint8_t share_name[SHARE_NAME];
	struct share_request share_request;
	struct share_reply share_reply;
	int share_fd;
	/* As of the last LOWER_DRAIN: the checkpoint's number, and how much it has of other processes. */
	uint64_t session;
	uint32_t imports;
	/* And how many modules have variables in several places, so that only a trial can tell whether
	 * they come to lie there again. */
	uint32_t uncertain;

	char question[LOWER_QUESTION]; /* of LOWER_ASK: a line for its control socket */

	int connection_fd; /* of LOWER_CONNECT: the owner sends the descriptor over it by SCM_RIGHTS */

	/* Parked threads made ahead: taken by exchanging the pointer for NULL. */
	struct lower_parked *spares[LOWER_SPARES];

	/* Calls waiting for the upper half's helper thread, newest first. */
	struct lower_callback *callbacks;
	uint32_t callback_bell; /* counts pushes */

	/* How the lower half finds a thread of the upper half that enters it on its own FS
	 * base, without a crossing (see uncrossed_calls.c): FS base + this is its
	 * crossing_thread pointer.
	 */
	int64_t upper_thread_offset;
	/* Writes to the program's standard output; for lower code on a thread of the upper
	 * half. Returns how much was written. */
	long (*print)(const char *text, size_t size);
	/* Ends the program as its own exit(3) would; for the same. */
	void (*exit)(int status);
};

/* The head of the upper half's record of a thread that crosses; stubs/crossing/thread.h has the
 * rest. */
struct crossing_head {
	uint64_t lower_fs, upper_fs;
};

#endif
