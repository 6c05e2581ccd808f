/*
 * uring_waiting.c - entries and completions are matched by their user data, and the counts
 * compared.
 */
#include "supervisor/uring/uring_waiting.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/target/x86_64.h"
#include "supervisor/uring/uring_entry.h"

int32_t uring_under_way(const struct uring_look *u)
{
	return u->info.sq_head - ring_read(&u->ring, u->ring.p.sq_off.dropped) -
	       (u->info.cq_tail + u->info.overflowed +
		       ring_read(&u->ring, u->ring.p.cq_off.overflow));
}

/* ---- what the memory still shows ---- */

/* Entries behind the tail may have been filled already, and be shown to the kernel later: in
 * the place of the oldest ones. A program does that just before it submits them, hardly in the
 * middle of a system call. */
static uint32_t filled_ahead(const struct uring_look *u)
{
	uint32_t size = u->info.sq_entries;

	for (size_t i = 0; i < u->process->thread_count; i++)
		if (!x86_64_in_syscall(&u->process->threads[i].regs))
			return (size + 1) / 2;
	return (size + 7) / 8;
}

static bool is_reliable(const struct uring_look *u, uint32_t number)
{
	uint32_t age = u->info.sq_head - number;
	uint32_t unsubmitted = ring_read(&u->ring, u->ring.p.sq_off.tail) - u->info.sq_head;

	return age + unsubmitted + filled_ahead(u) <= u->info.sq_entries;
}

static void add_entries(struct uring_window *w, const struct uring_look *u)
{
	const struct ring *r = &u->ring;
	uint32_t mask = u->info.sq_entries - 1, head = u->info.sq_head;
	uint32_t unsubmitted = ring_read(r, r->p.sq_off.tail) - head;
	uint32_t room = u->info.sq_entries - (unsubmitted & mask);
	uint32_t count = head < room ? head : room;

	w->all_entries = count == head && (!head || is_reliable(u, 0));
	for (uint32_t n = head - count; n != head; n++) {
		uint32_t slot = (ring_array(r) ? ring_array(r)[n & mask] : n) & mask;
		struct uring_entry entry = {
			.number = n,
			.sqe = (void *)(r->sqes + slot * ring_sqe_size(r)),
		};

		w->uncounted |= uring_request_is_uncounted(entry.sqe);
		buf_push(&w->entries, struct uring_entry, &entry);
	}
}

/* The last one of a request. */
static void add_completion(struct uring_window *w, uint64_t data, uint32_t flags)
{
	if (flags & IORING_CQE_F_MORE)
		w->uncounted = true;
	else
		buf_push(&w->done, uint64_t, &data);
}

static void add_overflowed(struct uring_window *w, const struct uring_look *u)
{
	struct uring_completion c;

	for (const char *p = NULL; (p = uring_info_overflow(&u->info, p, &c));)
		add_completion(w, c.user_data, c.flags);
}

static int compare_data(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void add_completions(struct uring_window *w, const struct uring_look *u)
{
	const struct ring *r = &u->ring;
	uint32_t size = u->info.cq_entries, tail = u->info.cq_tail;
	uint32_t count = tail < size ? tail : size;

	w->all_done = count == tail;
	for (uint32_t n = tail - count; n != tail; n++) {
		const struct io_uring_cqe *cqe = (void *)(r->rings + r->p.cq_off.cqes +
							  (n & (size - 1)) * ring_cqe_size(r));

		add_completion(w, cqe->user_data, cqe->flags);
	}
	add_overflowed(w, u);
	qsort(w->done.data, buf_count(&w->done, uint64_t), sizeof(uint64_t), compare_data);
}

/* ---- which of them wait ---- */

static size_t count_done(const struct uring_window *w, uint64_t data)
{
	size_t count = buf_count(&w->done, uint64_t), low = 0, high = count, end;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (*buf_at(&w->done, uint64_t, middle) < data)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < count && *buf_at(&w->done, uint64_t, end) == data;)
		end++;
	return end - low;
}

/* By user_data, the latest first. */
static int compare_entries(const void *a, const void *b)
{
	const struct uring_entry *x = *(struct uring_entry *const *)a;
	const struct uring_entry *y = *(struct uring_entry *const *)b;

	if (x->sqe->user_data != y->sqe->user_data)
		return x->sqe->user_data < y->sqe->user_data ? -1 : 1;
	return (int32_t)(y->number - x->number);
}

static bool are_alike(
	const struct uring_look *u, struct uring_entry *const *entries, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (memcmp(entries[i]->sqe, entries[0]->sqe, ring_sqe_size(&u->ring)) != 0)
			return false;
	return true;
}

/* All entries of one user_data. Programs know requests by it, so that where a value was used
 * again, the latest request waits; but not where requests are nothing to them (0), nor when
 * several wait. */
static int mark_same(struct uring_window *w, const struct uring_look *u,
	struct uring_entry *const *entries, size_t count, struct err *e)
{
	uint64_t data = entries[0]->sqe->user_data;
	size_t done = count_done(w, data), waiting = done < count ? count - done : 0;

	if (waiting && waiting < count && (!data || waiting > 1) &&
		!are_alike(u, entries, count))
		return err_set(e, 0,
			"the kernel does not show which of its requests wait: several have the "
			"same "
			"user_data (%#" PRIx64 ")",
			data);
	for (size_t i = 0; i < waiting; i++)
		entries[i]->waits = true;
	w->wait_count += waiting;
	return 0;
}

static int mark_entries(struct uring_window *w, const struct uring_look *u, struct err *e)
{
	size_t all = buf_count(&w->entries, struct uring_entry), count = 0, end;
	cleanup_free struct uring_entry **order =
		xcalloc(all + 1, sizeof(struct uring_entry *));

	for (size_t i = 0; i < all; i++) {
		struct uring_entry *entry = buf_at(&w->entries, struct uring_entry, i);

		if (!uring_request_ends_silently(entry->sqe))
			order[count++] = entry;
	}
	qsort(order, count, sizeof(struct uring_entry *), compare_entries);
	for (size_t i = 0; i < count; i = end) {
		uint64_t data = order[i]->sqe->user_data;

		for (end = i; end < count && order[end]->sqe->user_data == data;)
			end++;
		if (mark_same(w, u, order + i, end - i, e))
			return -1;
	}
	return 0;
}

/* ---- whether these are all ---- */

/* What a user can do. */
#define WAY_OUT                                                                                \
	" (a larger ring shows its requests for longer; most programs can be told to do "      \
	"without io_uring)"

/* It need not be among the requests that wait for files: it waits for something else, or until
 * others have ended. */
static bool waits_elsewhere(const struct uring_window *w, size_t i)
{
	const struct uring_entry *entry = buf_at(&w->entries, struct uring_entry, i);
	const unsigned links = IOSQE_IO_LINK | IOSQE_IO_HARDLINK;

	return uring_request_sleeps(entry->sqe) || entry->sqe->flags & IOSQE_IO_DRAIN ||
	       (i && entry[-1].waits && entry[-1].sqe->flags & links);
}

/* Requests that wait for files, against the kernel's list. */
static int compare_polls(
	const struct uring_window *w, const struct uring_look *u, bool *all, struct err *e)
{
	uint32_t listed[256] = {0}, found[256] = {0}, elsewhere[256] = {0};

	uring_info_count_polls(&u->info, listed);
	for (size_t i = 0; i < buf_count(&w->entries, struct uring_entry); i++) {
		const struct uring_entry *entry = buf_at(&w->entries, struct uring_entry, i);

		found[entry->sqe->opcode] += entry->waits;
		elsewhere[entry->sqe->opcode] += entry->waits && waits_elsewhere(w, i);
	}
	*all = true;
	for (int op = 0; op < 256; op++) {
		*all &= found[op] == listed[op];
		if (listed[op] > found[op])
			return err_set(e, 0,
				"a request (%s) waits in it that was submitted so long ago "
				"that its entry has been used again: the kernel does not show "
				"what it does" WAY_OUT,
				uring_request_name(op));
		if (found[op] > listed[op] + elsewhere[op])
			return err_set(e, 0,
				"a request (%s) is under way in it that does not end",
				uring_request_name(op));
	}
	return 0;
}

static int refuse_count(const struct uring_window *w, const struct uring_look *u, struct err *e)
{
	int32_t count = uring_under_way(u);

	if (w->uncounted || count < 0)
		return err_set(e, 0,
			"the kernel does not show which requests wait in it: some may have had "
			"several completions, or none, and their entries have been used "
			"again" WAY_OUT);
	return err_set(e, 0,
		"%d of its requests have not ended, of which its memory shows %u: the others "
		"were submitted so long ago that their entries have been used again, and "
		"the kernel does not show what they do" WAY_OUT,
		count, w->wait_count);
}

static int check_all(const struct uring_window *w, const struct uring_look *u, struct err *e)
{
	bool counted = !w->uncounted && uring_under_way(u) == (int32_t)w->wait_count, polls;

	for (size_t i = 0; i < buf_count(&w->entries, struct uring_entry); i++) {
		const struct uring_entry *entry = buf_at(&w->entries, struct uring_entry, i);

		if (entry->waits && !is_reliable(u, entry->number))
			return refuse_count(w, u, e);
	}
	if (compare_polls(w, u, &polls, e))
		return -1;
	return counted || (w->all_entries && (w->all_done || polls)) ? 0
								     : refuse_count(w, u, e);
}

int uring_window_look(struct uring_window *w, const struct uring_look *u, struct err *e)
{
	memset(w, 0, sizeof(*w));
	add_entries(w, u);
	add_completions(w, u);
	if (!w->uncounted && !uring_under_way(u) && !u->info.polls)
		return 0;
	return mark_entries(w, u, e) || check_all(w, u, e) ? -1 : 0;
}

void uring_window_release(struct uring_window *w)
{
	buf_free(&w->entries);
	buf_free(&w->done);
}
