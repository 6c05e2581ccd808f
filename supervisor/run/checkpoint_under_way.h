/*
 * checkpoint_under_way.h - the checkpoint that is being taken, as the thread that takes it and the event
 * loop know it: how far it is, whether it is to be given up, and who may wait for children.
 *
 * The thread that takes it calls the functions of the first part, the event loop the functions of
 * the second.
 */
#ifndef SUPERVISOR_RUN_CHECKPOINT_UNDER_WAY_H
#define SUPERVISOR_RUN_CHECKPOINT_UNDER_WAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"

/* Whether it can still be cancelled. */
enum under_way_state {
	UNDER_WAY_OPEN,
	UNDER_WAY_CANCELLED, /* `why` tells by what */
	UNDER_WAY_FINAL,     /* too late for that */
};

struct under_way {
	int wake_fd; /* eventfd(2): readable when `done` or `attached` has changed */
	_Atomic bool done;
	_Atomic bool frozen; /* the program has been; stays set when it runs again */
	int state;           /* enum under_way_state; atomic */
	const char *why;     /* a string that stays */

	pthread_mutex_t lock; /* held by the thread that waits for children */
	bool attached;        /* the program's processes are traced: nobody else may wait */

	uint64_t started_ns;          /* CLOCK_MONOTONIC */
	_Atomic uint64_t write_ns;    /* since when nothing but writing goes on, 0: not yet */
	_Atomic uint64_t done_before; /* of done_bytes, before that */
	_Atomic uint64_t total_bytes; /* of memory, once that is known */
	uint64_t done_bytes;          /* how many of them have been dealt with; atomic */
	/* How long the last checkpoint took from the last byte written to the last one on the
	 * disk, for each byte of memory; 0: there was none. */
	double sync_s_per_byte;
};

/* How far it is. */
struct under_way_report {
	const char *phase; /* "memory is being written" */
	uint64_t elapsed_ns, done_bytes, total_bytes;
	uint64_t rate; /* bytes a second; 0: not known yet */
};

int under_way_begin(struct under_way *u, struct err *e);
void under_way_end(struct under_way *u);

/* ---- the thread that takes the checkpoint ---- */

/* The program's processes are to be traced; they no longer are. */
void under_way_attach(struct under_way *u);
void under_way_detach(struct under_way *u);

/* -1, with @e filled, when it is to be given up. */
int under_way_cancelled(struct under_way *u, struct err *e);

/* The same, and from here on nothing can cancel it. */
int under_way_finally(struct under_way *u, struct err *e);

/* From here on what is written of memory counts: nothing has been, and how much there is is not known. */
void under_way_counts(struct under_way *u);

/* Memory is @total bytes in all, and the rest of it is written from now on: at what rate counts from here, as what was written
 * before waited for other work. */
void under_way_writes(struct under_way *u, uint64_t total);

/* -1, with @e filled, when by the rate so far memory cannot be written before @deadline_ns
 * (CLOCK_MONOTONIC). */
int under_way_foresee(const struct under_way *u, uint64_t deadline_ns, struct err *e);

/* All is done. */
void under_way_done(struct under_way *u);

/* ---- the event loop ---- */

/* Give it up, because of @why. False: it is too late. */
bool under_way_cancel(struct under_way *u, const char *why);

bool under_way_attached(struct under_way *u);

/* Whether children may be waited for and signalled, until under_way_leave_children(). */
bool under_way_take_children(struct under_way *u);
void under_way_leave_children(struct under_way *u);

void under_way_look(const struct under_way *u, struct under_way_report *report);

#endif
