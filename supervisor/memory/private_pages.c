/*
 * private_pages.c - regions are listed with what is known of them. When all is, regions with guards
 * are cut, and the list goes to the image.
 */
#include "supervisor/memory/private_pages.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "supervisor/memory/memory_source.h"
#include "supervisor/target/pagemap.h"

/* The walk over fewer pages takes less time than it would to come back to them. */
#define WORTH_WAITING (1ull << 20)

/* Of d->regions. */
struct listed_region {
	struct image_region r;
	struct vma v; /* its pages have yet to be found, when @waits; the name is d->vmas' */
	bool waits;
};

void private_pages_add_region(struct dump *d, const struct image_region *r)
{
	struct listed_region listed = {.r = *r};

	buf_push(&d->regions, struct listed_region, &listed);
}

bool private_pages_has_region(const struct dump *d, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < buf_count(&d->regions, struct listed_region); i++) {
		const struct image_region *r = &buf_at(&d->regions, struct listed_region, i)->r;

		if (r->start <= start && r->end > start)
			start = r->end;
	}
	return start >= end;
}

uint32_t private_pages_segment_flags(const struct vma *v)
{
	return (v->prot & PROT_READ ? PF_R : 0) | (v->prot & PROT_WRITE ? PF_W : 0) |
	       (v->prot & PROT_EXEC ? PF_X : 0);
}

static void write_region(struct dump *d, const struct image_region *r)
{
	image_writer_note(d->writer, IMAGE_NOTE_REGIONS, r, sizeof(*r));
}

/* Guards are a property of pages; in the image they get regions of their own. */
static void add_region_parts(struct dump *d, const struct image_region *r,
	const struct buf *runs, void (*add)(struct dump *d, const struct image_region *r))
{
	const struct page_run *run = runs->data;
	struct image_region part = *r;

	for (size_t i = 0; i < buf_count(runs, struct page_run); i++) {
		if (run[i].kind != PAGES_GUARD)
			continue;
		part.end = run[i].start;
		if (part.start < part.end)
			add(d, &part);
		part.start = run[i].start;
		part.end = run[i].end;
		part.offset = r->offset + (part.start - r->start);
		part.advice |= IMAGE_ADVICE_GUARD;
		add(d, &part);
		part = *r;
		part.start = run[i].end;
		part.offset = r->offset + (part.start - r->start);
	}
	part.end = r->end;
	if (part.start < part.end)
		add(d, &part);
}

/* A core file without the first page of a mapped ELF file shows no frame of it: the build-id
 * is there. */
static bool wants_first_page(struct dump *d, const struct vma *v, const struct buf *runs)
{
	const struct page_run *first = runs->len ? runs->data : NULL;
	unsigned char magic[SELFMAG];

	if (v->offset || !(v->prot & PROT_READ) || (first && first->start == v->start))
		return false;
	return !tracee_read(d->process->mem_fd, v->start, magic, SELFMAG, NULL) &&
	       !memcmp(magic, ELFMAG, SELFMAG);
}

/* Whether a fork copies it as it is. Of huge pages there may be too few for two. */
static bool is_copied(const struct vma *v)
{
	return !(v->flags & (VMA_DONTFORK | VMA_WIPEONFORK | VMA_HUGETLB));
}

static bool is_file(const struct image_region *r)
{
	return r->kind == IMAGE_REGION_FILE || r->kind == IMAGE_REGION_PRIVATE;
}

static bool is_watched(const struct dump *d, const struct vma *v, const struct image_region *r)
{
	return d->knows_clean && !is_file(r) && v->flags & VMA_UFFD_WP;
}

static int find_runs(struct dump *d, int pagemap, const struct vma *v,
	const struct image_region *r, struct buf *runs, struct err *e)
{
	const struct process *p = d->copy ? d->copy : d->process;

	if (pagemap_scan(pagemap, v, is_watched(d, v, r), runs, e))
		return err_prefix(e, "process %d (%s)", p->pid, p->comm);
	return 0;
}

static void add_runs(struct dump *d, const struct vma *v, const struct image_region *r,
	const struct buf *runs)
{
	struct memory_source *source = memory_source_own(d, v, is_copied(v));
	const struct page_run *run = runs->data;

	for (size_t i = 0; i < buf_count(runs, struct page_run); i++)
		if (run[i].kind != PAGES_GUARD)
			memory_source_run(d, source, run[i].start, run[i].end, is_file(r),
				run[i].kind == PAGES_CLEAN);
}

/* What decides whether a copy is made is not put off: how much of a watched region has been
 * written to. */
static bool may_wait(const struct dump *d, const struct vma *v, const struct image_region *r)
{
	return d->may_wait && is_copied(v) && !is_file(r) && v->own_bytes >= WORTH_WAITING &&
	       !is_watched(d, v, r);
}

int private_pages_dump(struct dump *d, int pagemap, const struct vma *v,
	const struct image_region *r, struct err *e)
{
	struct listed_region later = {.r = *r, .v = *v, .waits = true};
	cleanup_buf struct buf runs = {0};

	image_writer_range(d->writer, v->start, v->end, private_pages_segment_flags(v),
		!is_file(r) && v->prot != PROT_NONE);
	if (d->dirty && d->alone && !is_file(r) && !(v->flags & VMA_HUGETLB))
		buf_push(&d->watched, struct vma, v);
	if (may_wait(d, v, r)) {
		buf_push(&d->regions, struct listed_region, &later);
		d->memory_bytes += v->own_bytes;
		return 0;
	}
	if (find_runs(d, pagemap, v, r, &runs, e))
		return -1;
	add_region_parts(d, r, &runs, private_pages_add_region);
	if (is_file(r) && wants_first_page(d, v, &runs))
		memory_source_run(d, memory_source_own(d, v, false), v->start,
			v->start + IMAGE_BLOCK, true, false);
	add_runs(d, v, r, &runs);
	return 0;
}

uint64_t private_pages_expected(const struct dump *d)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < buf_count(&d->regions, struct listed_region); i++) {
		const struct listed_region *l = buf_at(&d->regions, struct listed_region, i);

		bytes += l->waits ? l->v.own_bytes : 0;
	}
	return bytes;
}

static int finish_region(
	struct dump *d, int pagemap, const struct listed_region *l, struct err *e)
{
	cleanup_buf struct buf runs = {0};

	if (!l->waits) {
		write_region(d, &l->r);
		return 0;
	}
	d->memory_bytes -= l->v.own_bytes;
	if (find_runs(d, pagemap, &l->v, &l->r, &runs, e))
		return -1;
	add_region_parts(d, &l->r, &runs, write_region);
	add_runs(d, &l->v, &l->r, &runs);
	return 0;
}

int private_pages_finish(struct dump *d, struct err *e)
{
	const struct process *p = d->copy ? d->copy : d->process;
	cleanup_fd int pagemap = private_pages_expected(d) ? pagemap_open(p->task, e) : -1;

	if (private_pages_expected(d) && pagemap < 0)
		return -1;
	for (size_t i = 0; i < buf_count(&d->regions, struct listed_region); i++)
		if (finish_region(d, pagemap, buf_at(&d->regions, struct listed_region, i), e))
			return -1;
	d->regions.len = 0;
	return 0;
}
