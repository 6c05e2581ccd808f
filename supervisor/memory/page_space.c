/* One address space that is being filled: pages that are waited for, and all others. */
#include "supervisor/memory/page_space.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <time.h>

#include "shared/batch.h"

/* What comes with a page that somebody waits for, and at a time in the background. */
#define AROUND   IMAGE_PACK_BLOCKS
#define PREFETCH 32u
/* So long a page may be nowhere before it is clear that it has been unmapped, and memory may be
 * short. */
#define ABSENT_NS  1000000000ull
#define NO_ROOM_NS 30000000000ull

void page_space_free(struct page_space *s)
{
	anchor_release(s->anchor, s->anchored);
	anchor_close(s->anchor);
	util_close(&s->uffd);
	util_close(&s->pidfd);
	buf_free(&s->missing.pieces);
	buf_free(&s->waiting);
	buf_free(&s->unmapped);
}

bool page_space_lacks(const struct page_space *s)
{
	return s->missing.pieces.len || s->waiting.len || s->unmapped.len;
}

/* No program has memory there, so the kernel finds none, if it finds the address space. */
bool page_space_exists(const struct page_space *s)
{
	struct uffdio_zeropage zero = {.range = {.start = LOADER_RANGE, .len = IMAGE_BLOCK}};

	return !ioctl(s->uffd, UFFDIO_ZEROPAGE, &zero) || errno != ESRCH;
}

/* Whether our memory is at [@start, @end), in one mapping; -1: mappings change. What is asked for
 * cannot be done with anonymous memory, so that nothing is changed by it. */
static int is_mapped(struct page_space *s, uint64_t start, uint64_t end)
{
	struct uffdio_continue c = {.range = {.start = start, .len = end - start}};

	if (!ioctl(s->uffd, UFFDIO_CONTINUE, &c) || errno == EINVAL)
		return 1;
	return errno == EAGAIN ? -1 : 0;
}

void page_space_unmapped(struct page_space *s, uint64_t start, uint64_t end)
{
	struct address_range range = {start, end};

	buf_push(&s->unmapped, struct address_range, &range);
}

/* Of mremap(2) the kernel tells first where memory has gone to, and only when that has been read that
 * it has left its old place. Another thread may have moved memory to there meanwhile: it stays.
 * False while mappings change. */
static bool cut_unmapped(struct page_space *s, struct address_range *r)
{
	while (r->start < r->end) {
		int mapped = is_mapped(s, r->start, r->end);
		uint64_t to = r->end;

		if (!mapped) {
			to = r->start + IMAGE_BLOCK;
			mapped = is_mapped(s, r->start, to);
		}
		if (mapped < 0)
			return false;
		if (!mapped)
			missing_cut(&s->missing, r->start, to);
		r->start = to;
	}
	return true;
}

/* Whether anything that is missing is in @r. */
static bool has_missing_page(const struct page_space *s, const struct address_range *r)
{
	for (size_t i = 0; i < buf_count(&s->missing.pieces, struct missing_piece); i++) {
		const struct missing_piece *p =
			buf_at(&s->missing.pieces, struct missing_piece, i);

		if (p->start < r->end && r->start < p->end)
			return true;
	}
	return false;
}

static bool cut_all_unmapped(struct page_space *s)
{
	while (s->unmapped.len) {
		size_t last = buf_count(&s->unmapped, struct address_range) - 1;
		struct address_range *r = buf_at(&s->unmapped, struct address_range, last);

		if (has_missing_page(s, r) && !cut_unmapped(s, r))
			return false;
		s->unmapped.len -= sizeof(*r);
	}
	return true;
}

static void wake_waiters(struct page_space *s, uint64_t at)
{
	struct uffdio_range range = {.start = at, .len = IMAGE_BLOCK};

	/* There may be nobody. */
	(void)ioctl(s->uffd, UFFDIO_WAKE, &range);
}

/* How long the page at @at has been refused by now. */
static uint64_t refused_for(struct page_space *s, uint64_t at)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (s->refused != at || !s->since_ns) {
		s->refused = at;
		s->since_ns = now;
	}
	return now - s->since_ns;
}

/* What it means that the kernel has not taken the page at @at. What is in no mapping of ours is
 * waited for by nobody: its thread looks again, and meets what is there now. */
static enum page_result judge_error(struct page_space *s, uint64_t at, int error, struct err *e)
{
	switch (error) {
	case EEXIST:
		wake_waiters(s, at);
		return PAGE_FILLED;
	case EAGAIN:
		return PAGE_CHANGING;
	case ESRCH:
		return PAGE_GONE;
	case ENOENT:
		wake_waiters(s, at);
		if (refused_for(s, at) < ABSENT_NS)
			return PAGE_CHANGING;
		s->refused = at + IMAGE_BLOCK; /* nor will the next one be waited for */
		return PAGE_FILLED;
	case ENOMEM:
		if (refused_for(s, at) < NO_ROOM_NS)
			return PAGE_CHANGING;
		break;
	default:
		break;
	}
	err_set(e, error, "cannot fill the page at %#lx", (unsigned long)at);
	return PAGE_FAILED;
}

static enum page_result fill_zero(struct page_space *s, uint64_t at, struct err *e)
{
	struct uffdio_zeropage zero = {.range = {.start = at, .len = IMAGE_BLOCK}};

	return ioctl(s->uffd, UFFDIO_ZEROPAGE, &zero) ? judge_error(s, at, errno, e)
						      : PAGE_FILLED;
}

/* Copy at most @size bytes, one page at least if all is well; *done says how many. */
static enum page_result copy_some(struct page_space *s, uint64_t at, const uint8_t *data,
	uint64_t size, uint64_t *done, struct err *e)
{
	struct uffdio_copy c = {.dst = at, .src = (uintptr_t)data, .len = size};

	*done = size;
	if (!ioctl(s->uffd, UFFDIO_COPY, &c) || c.copy > 0) {
		*done = c.copy;
		s->since_ns = 0;
		return PAGE_FILLED;
	}
	*done = IMAGE_BLOCK;
	/* Two mappings may meet in it, which is no obstacle to a single page. */
	if (errno == ENOENT && size > IMAGE_BLOCK)
		return copy_some(s, at, data, IMAGE_BLOCK, done, e);
	return judge_error(s, at, errno, e);
}

static enum page_result copy_all(
	struct page_space *s, uint64_t at, const uint8_t *data, uint64_t size, struct err *e)
{
	enum page_result r = PAGE_FILLED;

	for (uint64_t done; size && r == PAGE_FILLED; size -= done) {
		r = copy_some(s, at, data, size, &done, e);
		at += done;
		data += done;
	}
	return r;
}

static enum page_result read_blocks(
	struct page_space *s, const struct missing_blocks *b, uint8_t *data, struct err *e)
{
	return image_read_blocks(s->img, b->extent, b->first, b->count, data, e) ? PAGE_FAILED
										 : PAGE_FILLED;
}

/* The page that is waited for first; those around it may fail. */
static enum page_result fill_page(struct page_space *s, uint64_t at, struct err *e)
{
	static uint8_t data[AROUND * IMAGE_BLOCK] __attribute__((aligned(IMAGE_BLOCK)));
	const struct missing_piece *piece = missing_find(&s->missing, at);
	struct missing_blocks b;
	enum page_result r;

	if (!piece || !missing_around(s->img, piece, at, AROUND, &b))
		return fill_zero(s, at, e);
	r = read_blocks(s, &b, data, e);
	if (r == PAGE_FILLED)
		r = copy_all(s, at, data + (at - b.address), IMAGE_BLOCK, e);
	if (r != PAGE_FILLED)
		return r;
	r = copy_all(s, b.address, data, (uint64_t)b.count * IMAGE_BLOCK, e);
	return r == PAGE_CHANGING ? PAGE_FILLED : r;
}

enum page_result page_space_serve(struct page_space *s, struct err *e)
{
	if (!cut_all_unmapped(s))
		return PAGE_CHANGING;
	while (s->waiting.len) {
		size_t last = buf_count(&s->waiting, uint64_t) - 1;
		enum page_result r = fill_page(s, *buf_at(&s->waiting, uint64_t, last), e);

		if (r != PAGE_FILLED)
			return r;
		s->waiting.len -= sizeof(uint64_t);
	}
	return PAGE_FILLED;
}

enum page_result page_space_prefetch(struct page_space *s, struct err *e)
{
	static uint8_t data[PREFETCH * IMAGE_BLOCK] __attribute__((aligned(IMAGE_BLOCK)));
	const struct missing_piece *piece = buf_at(&s->missing.pieces, struct missing_piece, 0);
	struct missing_blocks b;
	enum page_result r;
	uint64_t start, end;

	if (!s->missing.pieces.len)
		return PAGE_FILLED;
	start = piece->start;
	end = piece->end;
	if (missing_first(s->img, piece, PREFETCH, &b)) {
		r = read_blocks(s, &b, data, e);
		if (r == PAGE_FILLED)
			r = copy_all(s, b.address, data, (uint64_t)b.count * IMAGE_BLOCK, e);
		if (r != PAGE_FILLED)
			return r;
		end = b.address + (uint64_t)b.count * IMAGE_BLOCK;
	}
	missing_cut(&s->missing, start, end);
	return PAGE_FILLED;
}
