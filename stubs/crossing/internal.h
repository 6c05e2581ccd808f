/* internal.h - what the files of the crossing offer each other. */
#ifndef STUBS_CROSSING_INTERNAL_H
#define STUBS_CROSSING_INTERNAL_H

#include <stdint.h>

#include "lower/table.h"
#include "stubs/crossing/crossing.h"
#include "stubs/crossing/thread.h"

#define HIDDEN __attribute__((visibility("hidden")))

/* This thread's record; NULL until it crosses. */
extern HIDDEN __thread struct crossing_thread *crossing_current
	__attribute__((tls_model("initial-exec")));

/* FS base of a borrowed parked thread + this: where the record is found again. */
extern HIDDEN int64_t crossing_upper_slot_offset;
/* lower_table.call_upper */
extern HIDDEN void *crossing_call_upper;

/* Bounds of the crossing's code, for whoever stops threads. */
extern HIDDEN char crossing_text[], crossing_text_end[], crossing_trap[];

/* State of this process that a child of fork(2) must not take for its own: in a page that the
 * kernel wipes there. */
struct process {
	uint32_t alive;
	uint32_t lock;         /* bringing up, libraries */
	uint32_t request_lock; /* lower_table.request */
	uint32_t actions_lock; /* signals.c */
	uint32_t thunks_lock;  /* callbacks.c */
	uint32_t helper;       /* thread for callbacks: 0 not made */
	struct lower_table *table;
};

/* process.c. All block signals while they hold a lock. */
HIDDEN struct process *process_get(void);
/* 0, or -1: there is no lower half and will be none. */
HIDDEN int process_bring_up(void);
HIDDEN int process_open_library(struct crossing_library *library);
HIDDEN struct crossing_library *process_find_library(const void *slot);
/* Ask the lower half for something; returns its result. */
HIDDEN int process_request(struct lower_table *table, uint32_t request,
	struct lower_library *library, struct lower_parked **parked);

/* Before the first thread crosses; under a lock. */
HIDDEN void thread_make_key(void);

HIDDEN uint64_t signals_block(void);
HIDDEN void signals_restore(uint64_t mask);
/* Take over the program's handlers, now and later. 0 or -1. */
HIDDEN int signals_take_over(void);

HIDDEN int callbacks_start_helper(void);
/* @function as lower code may call it on threads of the upper half only; NULL: no more room. */
HIDDEN void *callbacks_thunk(void *function);

#endif
