/*
 * hidden_pages.c - a second, larger mapping of the same memory is made in the process for a
 * moment (struct view), and what no mapping of its own has shown is read through it.
 */
#include "supervisor/fd/hidden_pages.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "ckpt/blocks.h"
#include "lib/notices.h"
#include "lib/procfs.h"
#include "supervisor/target/present_pages.h"
#include "supervisor/target/remote_query.h"

enum { PAGE = 4096 };

/* The object mapped once more, in a process that has it: bytes @from to @to of it are at @at.
 * In front of them is memory for present_pages(). */
struct view {
	struct remote r;
	const struct fd_mapped *like;
	uint64_t scratch, at, from, to;
	int code; /* why the kernel refuses one */
};

static bool is_error(int64_t result)
{
	return result < 0 && result > -4096;
}

static int view_close(struct view *v, struct err *e)
{
	uint64_t size = PRESENT_SCRATCH + v->to - v->from, at = v->scratch;
	int64_t result;

	if (!at)
		return 0;
	v->scratch = 0;
	return remote_set_scratch(&v->r, 0, 0, e) ||
			       REMOTE_CALL(&v->r, &result, e, SYS_munmap, at, size)
		       ? -1
		       : 0;
}

/* Up to @to of the object. 0 with v->scratch of 0 where the kernel refuses it. An old size of 0
 * makes a second mapping of the same, as large as we like (mremap(2)), into memory that is
 * unmapped as scratch memory is. */
static int view_open(struct view *v, uint64_t to, struct err *e)
{
	uint64_t size = to - v->like->from;
	int64_t area, at;

	if (view_close(v, e) || REMOTE_CALL(&v->r, &area, e, SYS_mmap, 0,
					PRESENT_SCRATCH + size, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))
		return -1;
	if (is_error(area)) {
		v->code = -area;
		return 0;
	}
	v->scratch = area;
	v->at = area + PRESENT_SCRATCH;
	v->from = v->like->from;
	v->to = to;
	if (remote_set_scratch(&v->r, area, PRESENT_SCRATCH + size, e) ||
		REMOTE_CALL(&v->r, &at, e, SYS_mremap, v->like->start, 0, size,
			MREMAP_MAYMOVE | MREMAP_FIXED, v->at, 0))
		return -1;
	if (!is_error(at))
		return 0;
	v->code = -at;
	return view_close(v, e);
}

/* What is below the lowest byte that is mapped shows only so. MAP_NONBLOCK: pages that are not
 * there are not to be made. */
static int view_from_start(struct view *v, uint64_t size, struct err *e)
{
	int64_t result;

	if (view_open(v, v->like->from + size, e))
		return -1;
	if (!v->scratch)
		return 0;
	if (REMOTE_CALL(&v->r, &result, e, SYS_remap_file_pages, v->at, size, 0, 0,
		    MAP_NONBLOCK, 0))
		return -1;
	if (result)
		return 0; /* nor can the program */
	v->to -= v->from;
	v->from = 0;
	return 0;
}

static bool view_has(const struct view *v, uint64_t offset)
{
	char byte;

	return !tracee_read(v->r.process->mem_fd, v->at + offset - v->from, &byte, 1, NULL);
}

/* The first page behind *size that the object does not have: whether it was found. */
static int find_end(struct view *v, uint64_t *size, bool *found, struct err *e)
{
	uint64_t step = PAGE;

	for (*found = false; !*found; step *= 2) {
		if (view_open(v, *size + step, e))
			return -1;
		if (!v->scratch)
			return 0;
		*found = !view_has(v, *size + step - PAGE);
		if (*found)
			*size = v->from + (present_end(v->r.process, v->at + *size - v->from,
						   v->at + *size + step - PAGE - v->from) -
						  v->at);
		else
			*size += step;
	}
	return 0;
}

/* ---- what is not mapped ---- */

static int compare_mapped(const void *a, const void *b)
{
	const struct fd_mapped *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* The bytes of an object of @size bytes that are in no mapping (struct present_run), which are
 * in order. */
static void find_gaps(const struct fd_object *o, uint64_t size, struct buf *gaps)
{
	const struct fd_mapped *m = o->mapped.data;
	size_t count = buf_count(&o->mapped, struct fd_mapped);
	uint64_t seen = 0;

	for (size_t i = 0; i <= count; i++) {
		struct present_run gap = {seen, i < count ? m[i].from : size};

		if (gap.start < gap.end)
			buf_push(gaps, struct present_run, &gap);
		if (i < count && m[i].to > seen)
			seen = m[i].to;
	}
}

/* Whether pages of the view may be swapped out, which mincore(2) does not tell. */
static int is_swapped(const struct view *v, bool *swapped, struct err *e)
{
	struct vma_list list;

	if (procfs_vmas(v->r.process->task, &list, e))
		return -1;
	*swapped = false;
	for (size_t i = 0; i < list.count; i++)
		*swapped |= list.v[i].start < v->at + v->to - v->from &&
			    list.v[i].end > v->at && list.v[i].swapped;
	vma_list_free(&list);
	return 0;
}

static int read_view(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	const struct view *v = context;

	return tracee_read(v->r.process->mem_fd, v->at + address - v->from, data, size, e);
}

static void add_block_run(
	struct buf *runs, struct view *v, uint32_t number, uint64_t start, uint64_t end)
{
	struct block_run run = {
		.address = start,
		.size = end - start,
		.object = number,
		.read = read_view,
		.context = v,
	};

	buf_push(runs, struct block_run, &run);
}

/* Those of its pages that are there; @memory: they can be told from holes. */
static int add_gap(struct buf *runs, struct view *v, uint32_t number,
	const struct present_run *gap, bool memory, struct err *e)
{
	uint64_t start = gap->start < v->from ? v->from : gap->start;
	cleanup_buf struct buf present = {0};

	if (start >= gap->end)
		return 0;
	if (!memory) {
		add_block_run(runs, v, number, start, gap->end);
		return 0;
	}
	if (present_pages(&v->r, v->at + start - v->from, v->at + gap->end - v->from,
		    v->scratch, &present, e))
		return -1;
	for (size_t i = 0; i < buf_count(&present, struct present_run); i++) {
		const struct present_run *p = buf_at(&present, struct present_run, i);

		add_block_run(
			runs, v, number, p->start - v->at + v->from, p->end - v->at + v->from);
	}
	return 0;
}

static int add_gaps(struct buf *runs, struct view *v, uint32_t number, const struct buf *gaps,
	bool memory, struct err *e)
{
	for (size_t i = 0; i < buf_count(gaps, struct present_run); i++)
		if (add_gap(runs, v, number, buf_at(gaps, struct present_run, i), memory, e))
			return -1;
	return 0;
}

/* Pages may be swapped out until they have been looked for. */
static int save_gaps(struct fd_dump *d, struct view *v, uint32_t number, const struct buf *gaps,
	struct err *e)
{
	cleanup_buf struct buf runs = {0};
	struct blocks_to_write to_write = {.writer = d->job};
	bool swapped = false, memory = fd_object_at(d, number)->o.dev == d->memory_device;

	if (add_gaps(&runs, v, number, gaps, memory, e) ||
		(memory && is_swapped(v, &swapped, e)))
		return -1;
	if (swapped) {
		runs.len = 0;
		if (add_gaps(&runs, v, number, gaps, false, e))
			return -1;
	}
	to_write.runs = runs.data;
	to_write.run_count = buf_count(&runs, struct block_run);
	return blocks_write(&to_write, e);
}

/* ---- */

static int cannot_look(const struct fd_object *o, int code, struct err *e)
{
	if (o->reordered)
		return err_set(e, 0,
			"%s: its pages have been put in another order (remap_file_pages, "
			"mremap), and it cannot be mapped a second time to read all of them "
			"(%s: "
			"is there a limit of the process's memory?): raise that, or run trecr "
			"as root",
			o->text, strerror(code));
	/* A copy of what a private mapping shows would no longer follow the file. */
	if (o->is_mapped_private)
		return err_set(e, 0,
			"%s is also mapped privately, and cannot be mapped a second time to "
			"read all of it (%s: is there a limit of the process's memory?): raise "
			"that, or run trecr as root",
			o->text, strerror(code));
	notice_add("%s cannot be mapped a second time (%s: is there a limit of the process's "
		   "memory?); those of its pages that are mapped nowhere are not in the "
		   "checkpoint",
		o->text, strerror(code));
	return 0;
}

static int look_behind(struct fd_dump *d, uint32_t number, struct view *v, struct err *e)
{
	struct fd_object *o = fd_object_at(d, number);
	cleanup_buf struct buf gaps = {0};

	if (!o->size_known && find_end(v, &o->o.size, &o->size_known, e))
		return -1;
	if (!o->size_known)
		return cannot_look(o, v->code, e);
	find_gaps(o, o->o.size, &gaps);
	if (!gaps.len)
		return 0;
	if (buf_at(&gaps, struct present_run, 0)->start < v->like->from
			? view_from_start(v, o->o.size, e)
			: view_open(v, o->o.size, e))
		return -1;
	return v->scratch ? save_gaps(d, v, number, &gaps, e) : cannot_look(o, v->code, e);
}

/* Of huge pages mremap(2) makes no second mapping that is larger. */
static bool may_be_hidden(const struct fd_object *o)
{
	return o->mapped.len && !o->o.flags;
}

static bool is_all_mapped(const struct fd_object *o)
{
	cleanup_buf struct buf gaps = {0};

	find_gaps(o, o->o.size, &gaps);
	return !gaps.len;
}

/* The program still gets at them by remap_file_pages(2). Behind the last byte that is mapped nothing
 * tells whether there is more. */
static int refuse_huge_gaps(const struct fd_object *o, struct err *e)
{
	if (!o->o.flags || !o->mapped.len || is_all_mapped(o))
		return 0;
	return err_set(e, 0,
		"%s has huge pages that no shared mapping shows at the moment, which cannot be "
		"read without CAP_CHECKPOINT_RESTORE: run trecr as root",
		o->text);
}

int fd_hidden_save(struct fd_dump *d, uint32_t number, struct err *e)
{
	const struct fd_object *o = fd_object_at(d, number);
	struct view v = {.like = o->mapped.data};
	int failed;

	if (refuse_huge_gaps(o, e))
		return -1;
	if (!may_be_hidden(o) || (o->size_known && is_all_mapped(o)))
		return 0;
	if (remote_begin(&v.r, v.like->process, &v.like->process->threads[0], e))
		return -1;
	failed = look_behind(d, number, &v, e);
	return remote_end(&v.r, failed ? NULL : e) || failed ? -1 : 0;
}

/* ---- at first ---- */

/* Most objects end where their mappings do. That is found out of many at once. */
struct look {
	struct remote r;
	size_t count;
	struct fd_object *objects[REMOTE_QUERY_MAX];
	struct remote_query queries[REMOTE_QUERY_MAX];
};

static const struct fd_mapped *lowest_mapping(const struct fd_object *o)
{
	return o->mapped.data;
}

/* What is refused is left to fd_hidden_save(). */
static int look_at_these(struct look *l, struct err *e)
{
	size_t n = 0;

	if (remote_query(&l->r, l->queries, l->count, e))
		return -1;
	for (size_t i = 0; i < l->count; i++) {
		struct remote_query *q = &l->queries[i];
		char byte;

		if (is_error(q->result))
			continue;
		if (tracee_read(l->r.process->mem_fd, q->result + q->args[2] - PAGE, &byte, 1,
			    NULL))
			l->objects[i]->size_known = true;
		l->queries[n++] = (struct remote_query){
			.nr = SYS_munmap, .args = {q->result, q->args[2]}};
	}
	l->count = 0;
	return remote_query(&l->r, l->queries, n, e);
}

static int look_at_one(struct look *l, struct fd_object *o, struct err *e)
{
	const struct fd_mapped *m = lowest_mapping(o);

	l->objects[l->count] = o;
	l->queries[l->count++] = (struct remote_query){
		.nr = SYS_mremap,
		.args = {m->start, 0, o->o.size + PAGE - m->from, MREMAP_MAYMOVE},
	};
	return l->count == REMOTE_QUERY_MAX ? look_at_these(l, e) : 0;
}

/* At all from number @n on that the same process has mapped; *n: the next one. */
static int look_in_process(struct fd_dump *d, uint32_t *n, struct err *e)
{
	struct process *p = lowest_mapping(fd_object_at(d, *n))->process;
	struct look l = {.count = 0};
	int failed = remote_begin(&l.r, p, &p->threads[0], e);

	if (failed)
		return -1;
	for (; !failed && *n <= buf_count(&d->objects, struct fd_object); ++*n) {
		struct fd_object *o = fd_object_at(d, *n);

		if (!may_be_hidden(o))
			continue;
		if (lowest_mapping(o)->process != p)
			break;
		failed = !o->size_known && look_at_one(&l, o, e);
	}
	failed = failed || look_at_these(&l, e);
	return remote_end(&l.r, failed ? NULL : e) || failed ? -1 : 0;
}

int fd_hidden_look(struct fd_dump *d, struct err *e)
{
	uint32_t count = buf_count(&d->objects, struct fd_object);

	for (uint32_t n = 1; n <= count; n++) {
		struct fd_object *o = fd_object_at(d, n);

		if (o->mapped.len)
			qsort(o->mapped.data, buf_count(&o->mapped, struct fd_mapped),
				sizeof(struct fd_mapped), compare_mapped);
	}
	for (uint32_t n = 1; n <= count;)
		if (!may_be_hidden(fd_object_at(d, n)))
			n++;
		else if (look_in_process(d, &n, e))
			return -1;
	return 0;
}
