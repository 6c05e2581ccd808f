/*
 * batch_plan.h - build batches of system calls for the loader (shared/batch.h), and the data
 * they point to, as one piece of memory that is then written into the target's window.
 */
#ifndef SUPERVISOR_TARGET_BATCH_PLAN_H
#define SUPERVISOR_TARGET_BATCH_PLAN_H

#include <stdint.h>

#include "lib/util.h"
#include "shared/batch.h"

/* A batch under construction. All zero is an empty one. */
struct batch_builder {
	struct buf calls; /* struct batch_call */
	struct buf what;  /* const char *: what each call does, for messages */
	uint64_t copier;  /* address of its struct batch_copier; 0: none; */
	uint64_t buffer;  /* and of its buffer */
};

/* Append a call. @what: "map memory", after "cannot"; a string that lasts. */
struct batch_call *batch_add(
	struct batch_builder *b, const char *what, long nr, const uint64_t args[6]);
#define BATCH_ADD(b, what, nr, ...)                                                            \
	batch_add((b), (what), (nr), (const uint64_t[6]){__VA_ARGS__})
void batch_free(struct batch_builder *b);

/* The memory that goes to LOADER_RANGE + PLAN_OFFSET in the target. */
#define PLAN_OFFSET 0x10000ul

struct plan {
	struct buf data;
	uint64_t shift; /* how far behind that place, for another process in the same memory */
};

/* Put @size bytes into the plan, 16-byte aligned; returns their address in the target. */
uint64_t plan_data(struct plan *p, const void *data, size_t size);
uint64_t plan_string(struct plan *p, const char *s);
/* Put a finished batch into the plan; returns its address. */
uint64_t plan_batch(struct plan *p, const struct batch_builder *b, enum batch_end end);

/* A stack of @size bytes for a thread that is to run the batch at @batch (0: none): returns
 * the address just above it, less what lies on it. */
uint64_t plan_stack(struct plan *p, size_t size, uint64_t batch);

struct plan_failure {
	size_t nth; /* the call's number in its batch */
	struct batch_call call;
};

/* After the batch at @address has run: 0 when all went well, 1 with what did not in @f. */
int plan_result(int mem_fd, uint64_t address, const struct batch_builder *b,
	struct plan_failure *f, struct err *e);
/* Says of it what was to be done, with what arguments, and the error. */
int plan_err(const struct batch_builder *b, const struct plan_failure *f, struct err *e);
/* Both. */
int plan_check(int mem_fd, uint64_t address, const struct batch_builder *b, struct err *e);

#endif
