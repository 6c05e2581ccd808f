/*
 * uring/uring_fdinfo.h - what /proc/PID/fdinfo/FD shows of an io_uring (io_uring/fdinfo.c in
 * the kernel).
 */
#ifndef SUPERVISOR_URING_URING_FDINFO_H
#define SUPERVISOR_URING_URING_FDINFO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "lib/util.h"

struct uring_info {
	char *text;
	uint32_t sq_entries, cq_entries;
	uint32_t sq_head, sq_tail, cq_tail; /* of both heads and tails the kernel's own */
	uint32_t overflowed;                /* completions that have found no room */
	uint32_t polls;                     /* requests that wait for a file to be ready */
	pid_t sq_thread;                    /* that polls the submission queue; -1: none */
	uint32_t files, buffers;            /* registered */
};

/* Look at descriptor @fd of @task. The caller releases @i, also after a failure. */
int uring_info_read(struct uring_info *i, pid_t task, int fd, struct err *e);
void uring_info_release(struct uring_info *i);

/* Of each operation, how many requests wait for files. */
void uring_info_count_polls(const struct uring_info *i, uint32_t counts[256]);

struct uring_completion {
	uint64_t user_data;
	int result;
	unsigned flags;
};

/* The completion behind @last (NULL: the first) of completions that have found no room, the
 * oldest first; NULL: there are no more. */
const char *uring_info_overflow(
	const struct uring_info *i, const char *last, struct uring_completion *c);

/* The line of slot number *slot or of the next slot that has something, of the slots behind @key
 * ("UserFiles"): what it says, the caller's to free; NULL: there are no more. */
char *uring_info_slot(const struct uring_info *i, const char *key, uint32_t *slot);

#endif
