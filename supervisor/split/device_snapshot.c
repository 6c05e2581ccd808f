/*
 * device_snapshot.c - a place in SNAPSHOT_WINDOW for each range of device memory, and the orders
 * that fill it.
 */
#include "supervisor/split/device_snapshot.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ckpt/blocks.h"
#include "shared/cuda/memory_state.h"
#include "supervisor/split/device_memory.h"

#define COPY_NS 60000000000ull

struct device_snapshot {
	struct process *process;
	const struct buf *runs;
	struct process own_process; /* takes its place when it has ended */
	int alive_fd;               /* while it is open, the copy is kept */
};

/* Neighbouring ranges of a device are one part of the copy, as the driver maps it. Behind the copy of
 * each range come the hashes of its blocks, which the device makes, and keeps until they are asked for. */
struct plan {
	struct buf parts, copies, hashes; /* struct lower_transfer */
};

static int order_all(struct process *p, enum lower_request request, const struct buf *transfers,
	struct err *e)
{
	size_t count = buf_count(transfers, struct lower_transfer);

	for (size_t i = 0; i < count; i += LOWER_TRANSFERS) {
		size_t n = count - i < LOWER_TRANSFERS ? count - i : LOWER_TRANSFERS;

		if (lower_order(p, request, buf_at(transfers, struct lower_transfer, i), n,
			    clock_ns(CLOCK_MONOTONIC) + COPY_NS, e))
			return -1;
	}
	return 0;
}

static void plan_range(struct plan *plan, const struct device_range *range)
{
	size_t count = buf_count(&plan->parts, struct lower_transfer);
	struct lower_transfer *part =
		count ? buf_at(&plan->parts, struct lower_transfer, count - 1) : NULL;
	struct lower_transfer copy = {.address = range->start,
		.size = range->end - range->start,
		.device = range->device};
	struct lower_transfer hashes = copy;

	if (!part || part->device != range->device) {
		struct lower_transfer next = {
			.address = part ? align_up(part->address + part->size, MEMORY_STEP)
					: SNAPSHOT_WINDOW,
			.device = range->device};

		buf_push(&plan->parts, struct lower_transfer, &next);
		part = buf_at(&plan->parts, struct lower_transfer, count);
	}
	copy.offset = part->address + part->size;
	part->size += copy.size;
	hashes.offset = part->address + part->size;
	part->size += align_up(copy.size / IMAGE_BLOCK * IMAGE_HASH_SIZE, IMAGE_BLOCK);
	buf_push(&plan->copies, struct lower_transfer, &copy);
	buf_push(&plan->hashes, struct lower_transfer, &hashes);
}

static void make_plan(struct plan *plan, const struct buf *runs)
{
	struct lower_transfer *part;

	for (size_t i = 0; i < buf_count(runs, struct block_run); i++)
		plan_range(
			plan, device_source_range(buf_at(runs, struct block_run, i)->context));
	part = plan->parts.data;
	for (size_t i = 0; i < buf_count(&plan->parts, struct lower_transfer); i++)
		part[i].size = align_up(part[i].size, MEMORY_STEP);
}

static int borrow_alive(struct process *p, int *fd, struct err *e)
{
	cleanup_fd int pidfd = syscall(SYS_pidfd_open, p->pid, 0);
	int number;

	if (!lower_peek(p->pid, LOWER_SHARED + offsetof(struct lower_table, snapshot_fd),
		    &number, sizeof(number)) &&
		pidfd >= 0)
		*fd = syscall(SYS_pidfd_getfd, pidfd, number, 0);
	return *fd >= 0
		       ? 0
		       : err_set(e, errno, "cannot reach the lower half of process %d", p->pid);
}

/* When nothing of it is there any more, that does no harm. */
static void release_copies(struct process *p)
{
	(void)lower_order(p, LOWER_RELEASE, NULL, 0, clock_ns(CLOCK_MONOTONIC) + COPY_NS, NULL);
	p->lower->has_snapshot = false;
}

/* While nothing runs, as the device needs code of ours for it. 0; 1: it cannot; or -1. */
static int hash_memory(struct process *p, const struct plan *plan, struct err *e)
{
	struct err failure = ERR_INIT;

	if (p->lower->unable)
		return 1;
	if (!order_all(p, LOWER_HASH, &plan->hashes, &failure))
		return 0;
	if (p->lower->unable)
		return 1;
	*e = failure;
	return -1;
}

/* 0; 1: without hashes; or -1. */
static int copy_memory(struct process *p, const struct plan *plan, int *alive_fd, struct err *e)
{
	int r;

	if (buf_count(&plan->parts, struct lower_transfer) > LOWER_TRANSFERS)
		return err_set(e, 0, "its memory of several GPUs is mixed");
	if (order_all(p, LOWER_RESERVE, &plan->parts, e))
		return -1;
	r = hash_memory(p, plan, e);
	if (r >= 0 && !borrow_alive(p, alive_fd, e) &&
		!order_all(p, LOWER_SNAPSHOT, &plan->copies, e))
		return r;
	release_copies(p);
	return -1;
}

static void move_sources(const struct device_snapshot *s, const struct plan *plan, bool hashed)
{
	for (size_t i = 0; i < buf_count(s->runs, struct block_run); i++)
		device_source_move(buf_at(s->runs, struct block_run, i)->context,
			buf_at(&plan->copies, struct lower_transfer, i)->offset,
			hashed ? buf_at(&plan->hashes, struct lower_transfer, i)->offset : 0);
}

static void free_snapshot(struct device_snapshot *s)
{
	if (s->alive_fd >= 0)
		close(s->alive_fd);
	free(s);
}

struct device_snapshot *device_snapshot_make(
	struct process *p, const struct buf *runs, struct err *e)
{
	struct device_snapshot *s = xcalloc(1, sizeof(*s));
	struct plan plan = {{0}, {0}, {0}};
	int r;

	*s = (struct device_snapshot){.process = p, .runs = runs, .alive_fd = -1};
	make_plan(&plan, runs);
	r = copy_memory(p, &plan, &s->alive_fd, e);
	if (r < 0) {
		free_snapshot(s);
		s = NULL;
	} else {
		move_sources(s, &plan, !r);
		p->lower->has_snapshot = true;
	}
	buf_free(&plan.parts);
	buf_free(&plan.copies);
	buf_free(&plan.hashes);
	return s;
}

void device_snapshot_keep(struct device_snapshot *s)
{
	s->own_process = (struct process){.pid = s->process->pid,
		.vpid = s->process->vpid,
		.mem_fd = -1,
		.lower = s->process->lower};
	s->process->lower = NULL;
	s->process = &s->own_process;
	for (size_t i = 0; i < buf_count(s->runs, struct block_run); i++)
		device_source_of(buf_at(s->runs, struct block_run, i)->context, s->process);
}

pid_t device_snapshot_vpid(const struct device_snapshot *s)
{
	return s->process->vpid;
}

void device_snapshot_end(struct device_snapshot *s)
{
	if (!s)
		return;
	release_copies(s->process);
	if (s->process == &s->own_process)
		lower_free(s->own_process.lower);
	free_snapshot(s);
}
