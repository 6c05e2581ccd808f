/*
 * uring_settle.c - waits for requests that end, and sorts the others by thread and by whether
 * they can be issued again.
 */
#include "supervisor/uring/uring_settle.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "supervisor/target/clocks.h"
#include "supervisor/target/x86_64.h"
#include "supervisor/uring/uring_entry.h"
#include "supervisor/uring/uring_waiting.h"

/* Disks take this long at most, or are asked again by the next checkpoint. */
#define PATIENCE_NS 3000000000ull
/* When nothing has ended for so long, what is left does not end. */
#define CALM_NS  1000000000ull
#define PAUSE_NS 500000

/* What is finished gets its entry when the thread that has begun it runs. */
static int let_finish(struct uring_look *u, struct err *e)
{
	const uint64_t enter[6] = {u->s->fd, 0, 0, IORING_ENTER_GETEVENTS, 0, 8}, none[6] = {0};
	int64_t result;

	if (u->issuer)
		return uring_call_as(u, u->issuer, SYS_io_uring_enter, enter, &result, e);
	if (u->flags & IORING_SETUP_SQPOLL) {
		(void)syscall(
			SYS_io_uring_enter, u->s->dup, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0);
		return 0;
	}
	for (size_t i = 0; i < u->process->thread_count; i++)
		if (uring_call_as(u, &u->process->threads[i],
			    u->flags & IORING_SETUP_IOPOLL ? SYS_io_uring_enter : SYS_getpid,
			    u->flags & IORING_SETUP_IOPOLL ? enter : none, &result, e))
			return -1;
	return 0;
}

static bool is_taken(const struct uring_look *u)
{
	return !(u->flags & IORING_SETUP_SQPOLL) || u->info.sq_head == u->info.sq_tail;
}

/* ---- what waits ---- */

static int check_unchanged(
	const struct uring_window *w, const struct io_uring_sqe *sqe, struct err *e)
{
	for (size_t i = 0; i < buf_count(&w->entries, struct uring_entry); i++)
		if (uring_request_changes(buf_at(&w->entries, struct uring_entry, i)->sqe, sqe))
			return err_set(e, 0,
				"a request (%s) waits in it that may have been changed by "
				"another (POLL_REMOVE, TIMEOUT_REMOVE), which is not supported",
				uring_request_name(sqe->opcode));
	return 0;
}

/* Its follower would be one of another request. */
static int check_chain(const struct uring_window *w, size_t i, struct err *e)
{
	const struct uring_entry *entry = buf_at(&w->entries, struct uring_entry, i);

	if (!(entry->sqe->flags & (IOSQE_IO_LINK | IOSQE_IO_HARDLINK)) ||
		(i + 1 < buf_count(&w->entries, struct uring_entry) && entry[1].waits))
		return 0;
	return err_set(e, 0,
		"a request (%s) waits in it, and the request that is linked to it does not",
		uring_request_name(entry->sqe->opcode));
}

static void add_request(
	const struct uring_look *u, const struct uring_entry *entry, struct buf *out)
{
	clockid_t clock;
	uint64_t now, end;

	buf_printf(out, "request %u", entry->number);
	if (uring_request_ends_at(u, entry->sqe, &clock, &end)) {
		now = clock_ns(clock);
		buf_printf(out, " %" PRIu64, end > now ? end - now : 0);
	}
	buf_printf(out, "\n");
}

static int add_waiting(const struct uring_look *u, const struct uring_window *w,
	struct buf *out, struct err *e)
{
	for (size_t i = 0; i < buf_count(&w->entries, struct uring_entry); i++) {
		const struct uring_entry *entry = buf_at(&w->entries, struct uring_entry, i);

		if (!entry->waits)
			continue;
		if (uring_request_check(u, entry->sqe, e) || check_chain(w, i, e) ||
			check_unchanged(w, entry->sqe, e))
			return -1;
		add_request(u, entry, out);
	}
	return 0;
}

/* *final: if it fails, it will again. */
static int find_waiting(const struct uring_look *u, struct buf *out, bool *final, struct err *e)
{
	struct uring_window w;
	int failed = uring_window_look(&w, u, e);

	*final = !failed || (int32_t)u->info.polls == uring_under_way(u);
	if (!failed)
		failed = add_waiting(u, &w, out, e);
	uring_window_release(&w);
	return failed ? -1 : 0;
}

/* ---- */

/* Anything but this ends meanwhile, if it ends. */
struct progress {
	int32_t under_way;
	uint32_t polls, cq_tail;
};

static bool has_moved(const struct uring_look *u, struct progress *p)
{
	struct progress now = {uring_under_way(u), u->info.polls, u->info.cq_tail};
	bool moved = now.under_way != p->under_way || now.polls != p->polls ||
		     now.cq_tail != p->cq_tail;

	*p = now;
	return moved;
}

int uring_settle(struct uring_look *u, struct buf *out, struct err *e)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), deadline = now + PATIENCE_NS, last = 0;
	struct progress p = {0};
	bool final = false;

	for (;; now = clock_ns(CLOCK_MONOTONIC)) {
		bool over = now > deadline || (last && now > last + CALM_NS);

		if (let_finish(u, e) || uring_look_again(u, e))
			return -1;
		if (has_moved(u, &p) || !is_taken(u) || !last || over) {
			size_t before = out->len;

			last = now;
			if (is_taken(u) && !find_waiting(u, out, &final, e))
				return 0;
			if (over && !is_taken(u))
				return err_set(e, 0,
					"the thread that polls it does not take its entries");
			if (over || final)
				return -1;
			out->len = before;
		}
		sleep_ns(PAUSE_NS);
	}
}

static bool waits_for(const struct uring_look *u, const struct thread *t)
{
	return x86_64_in_syscall(&t->regs) &&
	       x86_64_syscall_number(&t->regs) == SYS_io_uring_enter &&
	       (x86_64_syscall_arg(&t->regs, 3) & IORING_ENTER_REGISTERED_RING ||
		       x86_64_syscall_arg(&t->regs, 0) == (uint64_t)u->s->fd);
}

const struct thread *uring_submitter(const struct uring_look *u)
{
	const struct process *p = u->process;

	for (size_t i = 0; !u->issuer && i < p->thread_count; i++)
		if (waits_for(u, &p->threads[i]))
			return &p->threads[i];
	for (size_t i = 0; !u->issuer && i < p->thread_count; i++)
		if (p->threads[i].uses_rings)
			return &p->threads[i];
	return u->issuer ? u->issuer : &p->threads[0];
}
