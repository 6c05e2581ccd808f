/*
 * lower_half.c - finds the records in a process, and checks them; nothing in them is trusted.
 */
#include "supervisor/split/lower_half.h"

#include <errno.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

int lower_peek(pid_t pid, uint64_t address, void *data, size_t size)
{
	struct iovec local = {data, size}, remote = {(void *)address, size};

	errno = EFAULT; /* for what is read in part only */
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -1;
}

/* Sizes and places in a thread's record, of which a crossing knows a few kilobytes; what all
 * else is told by is addresses, which may be any. */
#define MAX_OFFSET (1u << 16)
#define MAX_ENTRY  256
#define MAX_DEPTH  65536

static bool is_sane(const struct crossing_info *i)
{
	return i->self_offset < MAX_OFFSET && i->top_offset < MAX_OFFSET &&
	       i->entries_offset < MAX_OFFSET && i->original_offset < MAX_OFFSET &&
	       i->entry_size >= sizeof(uint64_t) && i->entry_size <= MAX_ENTRY &&
	       i->return_offset <= i->entry_size - sizeof(uint64_t) &&
	       i->rsp_offset <= i->entry_size - sizeof(uint64_t) && i->depth &&
	       i->depth <= MAX_DEPTH;
}

static int check_records(const struct process *p, const struct records *r, struct err *e)
{
	if (r->version != RECORDS_VERSION)
		return err_set(e, 0,
			"process %d uses libraries of another version of trecr for its GPU or "
			"MPI",
			p->pid);
	if (r->lower > RECORDS_FAILED || !is_sane(&r->info))
		return lower_damaged(p->pid, e);
	return 0;
}

int lower_damaged(pid_t pid, struct err *e)
{
	return err_set(e, 0,
		"the records of its lower half that process %d holds for trecr have been "
		"overwritten",
		pid);
}

int lower_find(struct process *p, struct err *e)
{
	struct records r = {0};

	/* A child of fork(2) finds its parent's wiped. */
	if (lower_peek(p->pid, RECORDS_LIVE, &r, sizeof(r)) || r.magic != RECORDS_MAGIC ||
		r.lower == RECORDS_NONE) {
		/* Or it shared its parent's memory, and has executed a program since. */
		lower_free(p->lower);
		p->lower = NULL;
		return 0;
	}
	if (check_records(p, &r, e))
		return -1;
	if (!p->lower) {
		p->lower = xcalloc(1, sizeof(*p->lower));
		p->free_lower = lower_free;
		p->lower->order_fd = p->lower->done_fd = -1;
		staging_init(&p->lower->staging);
	}
	p->lower->info = r.info;
	p->lower->state = r.lower;
	p->lower->helper = r.helper;
	return 0;
}

bool lower_is_coming(const struct process *p)
{
	struct records r = {0};

	return !lower_peek(p->pid, RECORDS_LIVE, &r, sizeof(r)) && r.magic == RECORDS_MAGIC &&
	       r.lower == RECORDS_COMING;
}

void lower_free(struct lower_half *lower)
{
	if (!lower)
		return;
	buf_free(&lower->tids);
	if (lower->order_fd >= 0)
		close(lower->order_fd);
	if (lower->done_fd >= 0)
		close(lower->done_fd);
	staging_free(&lower->staging);
	free(lower);
}

/* Beyond the time that is given, for it to answer. */
#define GRACE_NS 1000000000ull

void lower_await_rest(pid_t pid, uint64_t deadline_ns)
{
	struct process p = {.pid = pid, .mem_fd = -1};
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (lower_find(&p, NULL) || !p.lower)
		return;
	p.lower->patience_ns = now < deadline_ns ? deadline_ns - now : 0;
	(void)lower_order(&p, LOWER_REST, NULL, 0, deadline_ns + GRACE_NS, NULL);
	lower_free(p.lower);
}

bool lower_owns(const struct process *p, pid_t tid)
{
	for (size_t i = 0; p->lower && i < buf_count(&p->lower->tids, pid_t); i++)
		if (*buf_at(&p->lower->tids, pid_t, i) == tid)
			return true;
	return false;
}
