/*
 * remote_query.c - the code that makes the calls (x86_64_query.S) is put where it can run, and
 * its results are read.
 */
#include "supervisor/target/remote_query.h"

#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"
#include "shared/batch.h"
#include "supervisor/target/vdso_code.h"
#include "supervisor/target/memory_limits.h"

#define PAGE 4096u
_Static_assert(QUERY_RESULTS + REMOTE_QUERY_MAX * sizeof(int64_t) + REMOTE_QUERY_BYTES <= PAGE,
	"all results fit");

#define PATIENCE_NS   10000000000ull
#define FIRST_LOOK_NS 100000000ull

/* So often we look before we sleep: on another processor it takes some microseconds. Where all are busy, it
 * may be ours that it waits for. */
#define LOOKS    40
#define SLEEP_NS 20000

extern const uint8_t x86_64_query_code[], x86_64_query_run[], x86_64_query_unmap[],
	x86_64_query_wait[], x86_64_query_slots[];

struct row {
	uint64_t nr, args[4], result;
};
_Static_assert(sizeof(struct row) == QUERY_ROW, "x86_64_query.S");

struct slots {
	uint64_t page, minus_page, tracer, done, table;
	struct row rows[]; /* or they are behind the page */
};

static size_t code_size(void)
{
	return x86_64_query_slots - x86_64_query_code;
}

/* Behind the rows the table ends with a 0. */
#define TABLE_MAX (REMOTE_QUERY_MAX * sizeof(struct row) + sizeof(uint64_t))
#define SCRATCH   (3 * PAGE)
_Static_assert(PAGE + TABLE_MAX <= SCRATCH, "all rows fit");

/* How many rows there is room for. */
static size_t rows_at_once(const struct remote *r)
{
	size_t fixed = CAVE_QUERY + code_size() + sizeof(struct slots) + sizeof(uint64_t);
	size_t room = r->process->cave_room;

	if (room < fixed)
		return 0;
	return r->query_table ? REMOTE_QUERY_MAX : (room - fixed) / sizeof(struct row);
}

/* Where the page is, or is to come. Nobody else maps anything in our window, so that a thread on
 * its way home can unmap it without a look; but a lower half may be there, or what a child of
 * fork(2) has of its parent's. */
static uint64_t page_of(const struct remote *r)
{
	return r->home.scratch ? r->home.scratch : LOADER_RANGE;
}

static bool is_mapped(const struct remote *r, uint64_t page)
{
	uint64_t any;

	return !tracee_read(r->process->mem_fd, page, &any, sizeof(any), NULL);
}

static bool can_query(const struct remote *r)
{
	const struct process *p = r->process;

	/* Filters act again when the supervisor has died, and may not know of kill(2). */
	return rows_at_once(r) && p->sees_us && !r->thread->seccomp &&
	       (r->home.scratch || !is_mapped(r, page_of(r)));
}

static uint64_t out_offset(const struct remote_query *queries, size_t n)
{
	uint64_t at = QUERY_RESULTS + REMOTE_QUERY_MAX * sizeof(int64_t);

	for (size_t i = 0; i < n; i++)
		at += align_up(queries[i].size, 8);
	return at;
}

static int write_code(
	struct remote *r, const struct remote_query *queries, size_t count, struct err *e)
{
	size_t fixed = code_size() + sizeof(struct slots);
	size_t table = count * sizeof(struct row) + sizeof(uint64_t);
	size_t size = fixed + (r->query_table ? 0 : table);
	cleanup_free uint8_t *code = xcalloc(1, fixed + table);
	struct slots *slots = (void *)(code + code_size());
	uint64_t at = r->process->cave + CAVE_QUERY, page = page_of(r);

	memcpy(code, x86_64_query_code, code_size());
	slots->page = page;
	slots->minus_page = -page;
	slots->tracer = gettid();
	slots->done = r->query_mark;
	slots->table = r->query_table ? page + PAGE : at + fixed;
	for (size_t i = 0; i < count; i++) {
		const struct remote_query *q = &queries[i];
		struct row *row = &slots->rows[i];

		row->nr = q->nr;
		memcpy(row->args, q->args, sizeof(row->args));
		if (q->out_arg)
			row->args[q->out_arg - 1] = page + out_offset(queries, i);
		row->result = page + QUERY_RESULTS + i * sizeof(int64_t);
	}
	if (size > r->queried)
		r->queried = size;
	if (r->query_table &&
		tracee_write(r->process->mem_fd, slots->table, slots->rows, table, e))
		return -1;
	return tracee_write(r->process->mem_fd, at, code, size, e);
}

/* Let it run from @code on, which is in x86_64_query.S. */
static int start_code(struct remote *r, const uint8_t *code, struct err *e)
{
	static const uint64_t none[6];
	struct user_regs_struct regs = r->home.regs;

	x86_64_set_syscall(
		&regs, r->process->cave + CAVE_QUERY + (code - x86_64_query_code), 0, none);
	return tracee_set_regs(&r->thread->tracee, &regs, e) ||
			       tracee_continue(&r->thread->tracee, 0, e)
		       ? -1
		       : 0;
}

static bool is_done(const struct remote *r, uint64_t page)
{
	uint64_t done;

	return !tracee_read(r->process->mem_fd, page + QUERY_DONE, &done, sizeof(done), NULL) &&
	       done == r->query_mark;
}

static bool is_gone(const struct remote *r, uint64_t page)
{
	return !is_mapped(r, page);
}

/* Stopped: whether the thread is where it waits, or on its way from there. */
static int is_waiting(
	const struct remote *r, struct user_regs_struct *regs, bool *waiting, struct err *e)
{
	uint64_t wait = r->process->cave + CAVE_QUERY + (x86_64_query_wait - x86_64_query_code);

	if (tracee_get_regs(&r->thread->tracee, regs, e))
		return -1;
	*waiting = x86_64_pc(regs) >= wait;
	return 0;
}

static int no_page(struct remote *r, const struct user_regs_struct *regs, struct err *e)
{
	pid_t pid = r->thread->tracee.pid;

	err_set(e, -x86_64_query_mapped(regs), "cannot map scratch memory in process %d", pid);
	return memory_limits_tell(pid, e);
}

/* It has been stopped because nothing was heard: no page is available, or it has not been
 * given a processor. */
static int look_where(struct remote *r, bool reached, struct err *e)
{
	struct user_regs_struct regs;
	bool waiting;

	if (is_waiting(r, &regs, &waiting, e))
		return -1;
	if (!reached && waiting)
		return no_page(r, &regs, e);
	return tracee_continue(&r->thread->tracee, 0, e);
}

/* Until @reached, while it runs. */
static int wait_until(struct remote *r, bool (*reached)(const struct remote *, uint64_t),
	uint64_t page, struct err *e)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	struct tracee *t = &r->thread->tracee;
	struct tracee_report report;
	bool asked = false;

	for (unsigned looks = 0; !reached(r, page); looks++) {
		uint64_t waited = clock_ns(CLOCK_MONOTONIC) - begin;

		if (remote_look(r, &report, e) || (report.event == TRACEE_EVENT_TRAP &&
							  look_where(r, reached(r, page), e)))
			return -1;
		if (waited > PATIENCE_NS)
			return err_set(e, 0,
				"process %d (%s) does not return from a system call", t->pid,
				r->process->comm);
		if (!asked && waited > FIRST_LOOK_NS) {
			asked = true;
			if (tracee_interrupt(t, e))
				return -1;
		}
		if (looks >= LOOKS)
			sleep_ns(SLEEP_NS);
		else
			sched_yield();
	}
	return 0;
}

static int read_results(struct remote *r, struct remote_query *queries, size_t count,
	uint64_t page, struct err *e)
{
	uint8_t data[PAGE];

	if (tracee_read(r->process->mem_fd, page, data, sizeof(data), e))
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct remote_query *q = &queries[i];

		memcpy(&q->result, data + QUERY_RESULTS + i * sizeof(q->result),
			sizeof(q->result));
		if (q->out_arg)
			memcpy(q->out, data + out_offset(queries, i), q->size);
	}
	return 0;
}

/* That it could not be read is not enough: what is left there would be in the way for ever. */
static int check_unmapped(const struct remote *r, struct err *e)
{
	struct user_regs_struct regs;
	bool waiting;

	if (is_waiting(r, &regs, &waiting, e))
		return -1;
	return waiting ? 0
		       : err_set(e, 0, "cannot examine scratch memory in process %d",
				 r->thread->tracee.pid);
}

/* The thread maps a page, and unmaps it when that has been read. */
static int run_with_page(
	struct remote *r, struct remote_query *queries, size_t count, struct err *e)
{
	uint64_t page = page_of(r);

	return remote_set_scratch(r, page, PAGE, e) || start_code(r, x86_64_query_code, e) ||
			       wait_until(r, is_done, page, e) || remote_stop(r, e) ||
			       read_results(r, queries, count, page, e) ||
			       start_code(r, x86_64_query_unmap, e) ||
			       wait_until(r, is_gone, page, e) || remote_stop(r, e) ||
			       check_unmapped(r, e) || remote_set_scratch(r, 0, 0, e)
		       ? -1
		       : 0;
}

/* In the page that is there. */
static int run_in_scratch(
	struct remote *r, struct remote_query *queries, size_t count, struct err *e)
{
	static const uint8_t nothing[PAGE];
	uint64_t page = page_of(r);

	return tracee_write(r->process->mem_fd, page, nothing, PAGE, e) ||
			       start_code(r, x86_64_query_run, e) ||
			       wait_until(r, is_done, page, e) || remote_stop(r, e) ||
			       read_results(r, queries, count, page, e)
		       ? -1
		       : 0;
}

static int run_queries(
	struct remote *r, struct remote_query *queries, size_t count, struct err *e)
{
	/* Another one each time: what stands in a page from before is no answer. */
	r->query_mark = clock_ns(CLOCK_MONOTONIC);
	if (write_code(r, queries, count, e))
		return -1;
	return r->home.scratch ? run_in_scratch(r, queries, count, e)
			       : run_with_page(r, queries, count, e);
}

/* One by one. */
static int run_query(struct remote *r, struct remote_query *q, struct err *e)
{
	uint64_t args[6] = {q->args[0], q->args[1], q->args[2], q->args[3]};

	if (q->out_arg) {
		args[q->out_arg - 1] = r->home.scratch;
		memset(q->out, 0, q->size);
		if (tracee_write(r->process->mem_fd, r->home.scratch, q->out, q->size, e))
			return -1;
	}
	if (remote_call(r, q->nr, args, &q->result, e))
		return -1;
	return q->out_arg ? tracee_read(r->process->mem_fd, r->home.scratch, q->out, q->size, e)
			  : 0;
}

uint64_t remote_query_scratch(struct remote *r, struct err *e)
{
	uint64_t at = remote_scratch(r, SCRATCH, e);

	r->query_table = at;
	return at;
}

int remote_query(struct remote *r, struct remote_query *queries, size_t count, struct err *e)
{
	BUG_ON(count > REMOTE_QUERY_MAX ||
		out_offset(queries, count) - out_offset(queries, 0) > REMOTE_QUERY_BYTES);
	if (can_query(r)) {
		size_t most = rows_at_once(r);

		for (size_t i = 0; i < count; i += most)
			if (run_queries(r, &queries[i], count - i < most ? count - i : most, e))
				return -1;
		return 0;
	}
	if (!r->home.scratch && !remote_scratch(r, PAGE, e))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (run_query(r, &queries[i], e))
			return -1;
	return 0;
}
