/* internal.h - what the files of the crossing offer each other. */
#ifndef STUBS_CROSSING_INTERNAL_H
#define STUBS_CROSSING_INTERNAL_H

#include <stdint.h>

#include "shared/table.h"
#include "stubs/crossing/crossing.h"
#include "stubs/crossing/thread.h"

#define HIDDEN __attribute__((visibility("hidden")))

/* This thread's record; NULL until it crosses. Entry points of stubs look at it, too. */
extern __attribute__((
	visibility("protected"))) __thread struct crossing_thread *crossing_current
	__attribute__((tls_model("initial-exec")));

/* Not 0: this thread holds a lock, or something of the lower half's, and must not be stopped
 * for a checkpoint. To be set with signals blocked. */
extern HIDDEN __thread uint32_t crossing_busy __attribute__((tls_model("initial-exec")));

/* FS base of a borrowed parked thread + this: where the record is found again. */
extern HIDDEN int64_t crossing_upper_slot_offset;
/* lower_table.call_upper */
extern HIDDEN void *crossing_call_upper;

/* For the supervisor, which stops threads. */
extern HIDDEN char crossing_trap[], crossing_trapped[], crossing_print[];

/* State of this process that a child of fork(2) must not take for its own: in a page that the
 * kernel wipes there. */
struct process {
	uint32_t alive;
	uint32_t lock;         /* bringing up, libraries */
	uint32_t request_lock; /* lower_table.request */
	uint32_t actions_lock; /* signals.c */
	uint32_t thunks_lock;  /* callbacks.c */
	uint32_t helper;       /* thread for callbacks: 0 not made */
	uint32_t threads_lock;
	struct lower_table *table;
	struct crossing_thread *threads;
};

/* process.c. All block signals while they hold a lock. */
HIDDEN struct process *process_get(void);
/* 0, or -1: there is no lower half and will be none. */
HIDDEN int process_bring_up(void);
HIDDEN int process_open_library(struct crossing_library *library);
/* All that were opened, newest first. */
HIDDEN struct crossing_library *process_libraries(void);
/* Map and start it as the records say, with descriptors from @fd_base on (0: choose). 0, or
 * -errno with what was being done. */
HIDDEN int process_start_lower(struct process *p, int fd_base, const char **step);
HIDDEN struct crossing_library *process_find_library(const void *slot);
/* For the supervisor of a restart: see crossing_info.restart. */
HIDDEN void crossing_restart(void);
/* Whether the lower half has this variable of the environment from the launcher of a restart, not from the program. */
HIDDEN int restart_gave_variable(const char *variable);
/* Before the first lower half of this process: what a restart has left for it becomes part of its environment. 0 or -1. */
HIDDEN int restart_give_environment(void);
/* The same if a restart has left it for a program that executed this one: ask for it (launcher.c). */
HIDDEN void launcher_ask(void);
/* Load @library for the first time, or the one that a restart has left word of: as library_load(). */
HIDDEN int restart_open_library(struct crossing_library *library, struct lower_table *table);
/* device_output.c */
HIDDEN long output_print(const char *text, size_t size);
HIDDEN long output_before_call(void *const *slot);
HIDDEN void output_print_kept(void);
/* Ask the lower half for something; returns its result. */
HIDDEN int process_request(struct lower_table *table, uint32_t request,
	struct lower_library *library, struct lower_parked **parked);

/* Before the first thread crosses; under a lock. */
HIDDEN void thread_make_key(void);

/* Give @t a parked thread. 0 or -1. */
HIDDEN int thread_attach(struct crossing_thread *t, struct lower_table *table);

/* Bracket around what must neither be interrupted nor stopped for a checkpoint. */
HIDDEN uint64_t busy_begin(void);
HIDDEN void busy_end(uint64_t mask);

/* records.c. The arena, ready to be used: 0 or -1. Under the process's lock. */
HIDDEN int records_open(void);
/* A copy of @text there; NULL for NULL, or without memory. */
HIDDEN char *records_string(const char *text);

HIDDEN uint64_t signals_block(void);
HIDDEN void signals_restore(uint64_t mask);
/* Take over the program's handlers, now and later. 0 or -1. */
HIDDEN int signals_take_over(void);

/* @function as lower code may call it on threads of the upper half only; NULL: no more room. */
HIDDEN void *callbacks_thunk(void *function);

#endif
