/*
 * diff.c - what differs between two checkpoints: regions and their contents, threads with
 * registers, descriptors, processes.
 */
#include <inttypes.h>
#include <string.h>

#include "supervisor/fd_table/descriptors.h"
#include "supervisor/fd_table/kind_table.h"
#include "tools/inspect/contents.h"
#include "tools/inspect/names.h"
#include "tools/inspect/text.h"
#include "tools/inspect/view.h"

/* One of the two processes that are compared. */
struct side {
	const struct checkpoint *c;
	const struct image *img;
	struct contents *contents;
	const struct image_region *regions;
	size_t region_count;
};

static struct side side_of(const struct checkpoint *c, size_t process)
{
	struct side s = {
		.c = c,
		.img = c->processes[process],
		.contents = contents_open(c, process),
	};

	s.regions = contents_regions(s.contents, &s.region_count);
	return s;
}

/* ---- blocks ---- */

static const struct image_module *module_of(const struct side *s, const struct image_region *r)
{
	const struct image_module *m;
	size_t count;

	m = image_note_array(s->img, IMAGE_NOTE_MODULES, struct image_module, &count);
	return r->module && r->module <= count ? &m[r->module - 1] : NULL;
}

static bool same_file(const struct side *a, const struct image_region *ra, const struct side *b,
	const struct image_region *rb)
{
	const struct image_module *x = module_of(a, ra), *y = module_of(b, rb);

	if (!x || !y)
		return false;
	return x->build_id_size == y->build_id_size && x->inode == y->inode &&
	       !memcmp(x->build_id, y->build_id, x->build_id_size) &&
	       !memcmp(x->hash, y->hash, sizeof(x->hash)) &&
	       !strcmp(image_string(a->img, x->path), image_string(b->img, y->path));
}

static uint64_t differing_hashes(const struct piece *p, const struct piece *q, uint64_t blocks)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < blocks; i++)
		n += memcmp(image_hash(p->img, p->x, p->block + i),
			     image_hash(q->img, q->x, q->block + i), IMAGE_HASH_SIZE) != 0;
	return n;
}

static uint64_t differing_vdso(const struct side *a, const struct piece *p,
	const struct side *b, const struct piece *q, uint64_t blocks)
{
	const char *x = a->img->notes[IMAGE_NOTE_VDSO].data;
	const char *y = b->img->notes[IMAGE_NOTE_VDSO].data;
	uint64_t n = 0;

	for (uint64_t i = 0; i < blocks; i++)
		n += memcmp(x + p->offset + i * IMAGE_BLOCK, y + q->offset + i * IMAGE_BLOCK,
			     IMAGE_BLOCK) != 0;
	return n;
}

/* How many blocks of two pieces that begin at the same address differ. */
static uint64_t differing_blocks(const struct side *a, const struct image_region *ra,
	const struct piece *p, const struct side *b, const struct image_region *rb,
	const struct piece *q, uint64_t blocks)
{
	if (p->place != q->place)
		return blocks;
	switch (p->place) {
	case PLACE_STORED:
		return differing_hashes(p, q, blocks);
	case PLACE_VDSO:
		return differing_vdso(a, p, b, q, blocks);
	case PLACE_FILE:
		return p->offset == q->offset && same_file(a, ra, b, rb) ? 0 : blocks;
	default:
		return 0;
	}
}

/* Blocks that differ where both regions are, which begin at the same address. */
static uint64_t compare_contents(const struct side *a, const struct image_region *ra,
	const struct side *b, const struct image_region *rb)
{
	uint64_t end = ra->end < rb->end ? ra->end : rb->end, at = ra->start, n = 0;

	while (at < end) {
		struct piece p = contents_piece(a->contents, ra, at);
		struct piece q = contents_piece(b->contents, rb, at);
		uint64_t to = p.end < q.end ? p.end : q.end;

		to = to < end ? to : end;
		n += differing_blocks(a, ra, &p, b, rb, &q, (to - at) / IMAGE_BLOCK);
		at = to;
	}
	return n;
}

/* ---- regions ---- */

static void region_cells(struct table *t, const char *mark, const struct image_region *r)
{
	char prot[4];

	table_cell(t, "%s", mark);
	table_cell(t, "%012" PRIx64 "-%012" PRIx64, r->start, r->end);
	table_cell(t, "%s", name_protection(r->prot, prot));
	table_cell(t, "%s", name_region_kind(r->kind));
}

static void lone_region(
	struct table *t, const char *mark, const struct side *s, const struct image_region *r)
{
	region_cells(t, mark, r);
	table_cell(t, "%" PRIu64 " blocks", (r->end - r->start) / IMAGE_BLOCK);
	table_cell(t, "%s", image_string(s->img, r->name));
	table_cell(t, "%s", "");
}

/* What the region was that is @rb now. */
static void describe_change(const struct side *a, const struct image_region *ra,
	const struct side *b, const struct image_region *rb, struct buf *out)
{
	const char *name = image_string(a->img, ra->name);
	char prot[4];

	if (ra->end != rb->end)
		buf_printf(out, ", ended at %" PRIx64, ra->end);
	if (ra->prot != rb->prot)
		buf_printf(out, ", was %s", name_protection(ra->prot, prot));
	if (ra->kind != rb->kind)
		buf_printf(out, ", was %s", name_region_kind(ra->kind));
	if (strcmp(name, image_string(b->img, rb->name)))
		buf_printf(out, ", was %s", *name ? name : "without a name");
	if (ra->flags != rb->flags || ra->advice != rb->advice) {
		buf_printf(out, ", was ");
		name_region_flags(ra, out);
		if (!ra->flags && !ra->advice)
			buf_printf(out, "without flags");
	}
}

/* Returns how many blocks differ. */
static uint64_t common_region(struct table *t, const struct side *a,
	const struct image_region *ra, const struct side *b, const struct image_region *rb)
{
	uint64_t n = compare_contents(a, ra, b, rb);
	cleanup_buf struct buf change = {0};

	describe_change(a, ra, b, rb, &change);
	if (!n && !change.len)
		return 0;
	region_cells(t, "~", rb);
	table_cell(
		t, "%" PRIu64 " of %" PRIu64 " blocks", n, (rb->end - rb->start) / IMAGE_BLOCK);
	table_cell(t, "%s", image_string(b->img, rb->name));
	table_cell(t, "%s", change.len ? text_of(&change) + 2 : "");
	return n;
}

static void diff_regions(const struct side *a, const struct side *b, struct buf *out)
{
	struct table t = {.columns = "lllllll"};
	uint64_t changed = 0, common = 0;
	size_t i = 0, k = 0;

	while (i < a->region_count || k < b->region_count) {
		const struct image_region *ra = &a->regions[i], *rb = &b->regions[k];

		if (k == b->region_count || (i < a->region_count && ra->start < rb->start)) {
			lone_region(&t, "-", a, ra);
			i++;
		} else if (i == a->region_count || rb->start < ra->start) {
			lone_region(&t, "+", b, rb);
			k++;
		} else {
			changed += common_region(&t, a, ra, b, rb);
			common += ((ra->end < rb->end ? ra->end : rb->end) - ra->start) /
				  IMAGE_BLOCK;
			i++;
			k++;
		}
	}
	text_line(out, "  memory: %" PRIu64 " of %" PRIu64 " blocks differ", changed, common);
	table_end(&t, out);
}

/* ---- threads ---- */

static const struct image_thread *threads_of(const struct side *s, size_t *count)
{
	return image_note_array(s->img, IMAGE_NOTE_THREADS, struct image_thread, count);
}

static const struct image_thread *find_thread(const struct side *s, int32_t tid)
{
	size_t count;
	const struct image_thread *t = threads_of(s, &count);

	for (size_t i = 0; i < count; i++)
		if (t[i].tid == tid)
			return &t[i];
	return NULL;
}

static bool same_xstate(const struct side *a, const struct image_thread *x,
	const struct side *b, const struct image_thread *y)
{
	const char *p = a->img->notes[IMAGE_NOTE_XSTATE].data;
	const char *q = b->img->notes[IMAGE_NOTE_XSTATE].data;

	return x->xstate_size == y->xstate_size &&
	       (!x->xstate_size ||
		       !memcmp(p + x->xstate_offset, q + y->xstate_offset, x->xstate_size));
}

static void diff_thread(const struct side *a, const struct image_thread *x,
	const struct side *b, const struct image_thread *y, struct buf *out)
{
	cleanup_buf struct buf what = {0};

	if (memcmp(x->regs, y->regs, sizeof(x->regs)))
		buf_printf(&what, ", registers (rip %#" PRIx64 ", was %#" PRIx64 ")",
			y->regs[16], x->regs[16]);
	if (!same_xstate(a, x, b, y))
		buf_printf(&what, ", extended registers");
	if (x->sigmask != y->sigmask)
		buf_printf(&what, ", blocked signals");
	if (memcmp(x->comm, y->comm, sizeof(x->comm)))
		buf_printf(&what, ", name (was %s)", (const char *)x->comm);
	if (what.len)
		text_line(out, "  ~ thread %d %s: %s", y->tid, (const char *)y->comm,
			text_of(&what) + 2);
}

static void diff_threads(const struct side *a, const struct side *b, struct buf *out)
{
	const struct image_thread *x, *y;
	size_t count;

	x = threads_of(a, &count);
	for (size_t i = 0; i < count; i++)
		if (!find_thread(b, x[i].tid))
			text_line(out, "  - thread %d %s", x[i].tid, (const char *)x[i].comm);
	y = threads_of(b, &count);
	for (size_t i = 0; i < count; i++) {
		x = find_thread(a, y[i].tid);
		if (x)
			diff_thread(a, x, b, &y[i], out);
		else
			text_line(out, "  + thread %d %s", y[i].tid, (const char *)y[i].comm);
	}
}

/* ---- descriptors ---- */

static const struct image_fd *fds_of(const struct side *s, size_t *count)
{
	return image_note_array(s->img, IMAGE_NOTE_FDS, struct image_fd, count);
}

static void describe_fd(const struct side *s, const struct image_fd *fd, struct buf *out)
{
	const struct image_description *x;
	size_t count;

	x = image_note_array(
		s->c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	fd_show(s->c->job, &x[fd->description], out);
	if (fd->cloexec)
		buf_printf(out, ", cloexec");
}

static void diff_fd(const struct side *a, const struct image_fd *x, const struct side *b,
	const struct image_fd *y, struct buf *out)
{
	cleanup_buf struct buf old = {0}, new = {0};

	if (x)
		describe_fd(a, x, &old);
	if (y)
		describe_fd(b, y, &new);
	if (!x)
		text_line(out, "  + descriptor %d: %s", y->fd, text_of(&new));
	else if (!y)
		text_line(out, "  - descriptor %d: %s", x->fd, text_of(&old));
	else if (strcmp(text_of(&old), text_of(&new)))
		text_line(out, "  ~ descriptor %d: %s; was %s", y->fd, text_of(&new),
			text_of(&old));
}

/* Both lists are written in the order of the numbers; a list that is not shows more differences
 * than there are. */
static void diff_fds(const struct side *a, const struct side *b, struct buf *out)
{
	size_t x_count, y_count, i = 0, k = 0;
	const struct image_fd *x = fds_of(a, &x_count), *y = fds_of(b, &y_count);

	while (i < x_count || k < y_count) {
		if (k == y_count || (i < x_count && x[i].fd < y[k].fd))
			diff_fd(a, &x[i++], b, NULL, out);
		else if (i == x_count || y[k].fd < x[i].fd)
			diff_fd(a, NULL, b, &y[k++], out);
		else
			diff_fd(a, &x[i++], b, &y[k++], out);
	}
}

/* ---- processes ---- */

/* Index of the process @pid, or the number of all. */
static size_t find_process(const struct checkpoint *c, int32_t pid)
{
	size_t i = 0;

	while (i < c->process_count && view_pid(c, i) != pid)
		i++;
	return i;
}

static void diff_process(const struct checkpoint *a, size_t i, const struct checkpoint *b,
	size_t k, struct buf *out)
{
	struct side x = side_of(a, i), y = side_of(b, k);

	text_line(out, "process %d", view_pid(b, k));
	/* Memory of another process is compared there. */
	if (checkpoint_owner(a, i, IMAGE_SHARED_MEMORY) == i &&
		checkpoint_owner(b, k, IMAGE_SHARED_MEMORY) == k)
		diff_regions(&x, &y, out);
	diff_threads(&x, &y, out);
	diff_fds(&x, &y, out);
	contents_close(x.contents);
	contents_close(y.contents);
}

void diff_text(const struct checkpoint *a, const struct checkpoint *b, struct buf *out)
{
	text_line(out, "from %s", a->path);
	text_line(out, "to   %s", b->path);
	if (memcmp(a->info->job_id, b->info->job_id, sizeof(a->info->job_id)))
		text_line(out, "These are of two different runs.");
	for (size_t i = 0; i < a->process_count; i++)
		if (find_process(b, view_pid(a, i)) == b->process_count)
			text_line(out, "- process %d", view_pid(a, i));
	for (size_t k = 0; k < b->process_count; k++) {
		size_t i = find_process(a, view_pid(b, k));

		if (i < a->process_count)
			diff_process(a, i, b, k, out);
		else
			text_line(out, "+ process %d", view_pid(b, k));
	}
}
