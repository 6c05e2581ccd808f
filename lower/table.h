/*
 * table.h - what the two halves of a process share: struct lower_table at LOWER_SHARED.
 *
 * The lower half (trecr-lower, a program on its own libc) serves requests of the upper half on
 * one thread; between requests the upper half calls straight into the libraries below. Either
 * side may be built on any libc, so nothing here is a libc's type.
 */
#ifndef LOWER_TABLE_H
#define LOWER_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define LOWER_SPARES 4

/* A thread of the lower half that sleeps and lends its thread-local storage, and with it its
 * identity, to a thread of the upper half. */
struct lower_parked {
	uint64_t fs;       /* its FS base */
	void **upper_slot; /* its crossing_thread pointer, where handlers and callbacks find it
			    */
	uint32_t leave;    /* set to 1 and woken: it ends, and its destructors run */
};

enum lower_request {
	LOWER_IDLE,
	LOWER_PARK,    /* make a parked thread: out parked */
	LOWER_LIBRARY, /* load a library: in library; out result */
	LOWER_DONE,
};

/* A library of which the upper half has a stub. */
struct lower_library {
	const char *soname;
	const char *names; /* functions, each ended by 0, and an empty one at the end */
	void **targets;    /* out: address of each; what is not there gets `missing` */
	void *missing;
	uintptr_t start, end; /* out: where the library lies */
};

/* A call that upper code is to make for a lower thread. */
struct lower_callback {
	struct lower_callback *next;
	long (*function)(long, long, long, long, long, long);
	long args[6];
	long result;
	uint32_t done;
};

/*
 * For whoever stops the process from outside: how to tell where a thread is, and to have one
 * that is below stop on its way up (doc/split-process.md, "Freeze"). Addresses are of upper
 * code and data.
 */
struct crossing_info {
	uint64_t text, text_end; /* in there a thread is neither above nor below: step it */
	uint64_t trap;           /* put in place of a return address: int3 */
	int64_t current_offset;  /* upper FS base + this: its crossing_thread pointer */
	int64_t slot_offset;     /* the same for the lower FS base a thread borrows */
	/* In struct crossing_thread: the pointer to the end of the side stack, and its start.
	 */
	uint64_t top_offset, entries_offset;
	/* In an entry: return address, stack pointer; and an entry's size. */
	uint64_t return_offset, rsp_offset, entry_size;
};

struct lower_table {
	/* Kept where they are, so that halves of different builds can say that they are. */
	uint32_t size;  /* of this structure, as who brought the lower half up knows it */
	uint32_t state; /* 0: not up yet, 1: ready, 2: it has failed */
	char failure[256];

	struct crossing_info info;

	/* Filled by whoever brings the lower half up, before its first instruction. */
	int fd_base;
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

	/* Parked threads made ahead: taken by exchanging the pointer for NULL. */
	struct lower_parked *spares[LOWER_SPARES];

	/* Calls waiting for the upper half's helper thread, newest first. */
	struct lower_callback *callbacks;
	uint32_t callback_bell; /* counts pushes */

	/* How the lower half finds a thread of the upper half that enters it on its own FS
	 * base, without a crossing (see gate.c): FS base + this is its crossing_thread pointer.
	 */
	int64_t upper_thread_offset;
	/* Writes to the program's standard output; for lower code on a thread of the upper
	 * half. Returns how much was written. */
	long (*print)(const char *text, size_t size);
};

/* The head of the upper half's record of a thread that crosses; stubs/crossing/thread.h has the
 * rest. */
struct crossing_head {
	uint64_t lower_fs, upper_fs;
};

#endif
