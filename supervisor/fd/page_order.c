#include "supervisor/fd/page_order.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "lib/procfs.h"
#include "supervisor/target/remote.h"

enum { PAGE = 4096 };

/* Whether a mapping that begins like @v can be read from @offset of the object on. */
static int look_behind(
	struct remote *r, const struct vma *v, uint64_t offset, bool *there, struct err *e)
{
	uint64_t size = offset + PAGE - v->offset;
	char byte;
	int64_t at;

	/* An old size of 0 makes a second mapping of the same, as large as we like (mremap(2)).
	 */
	if (REMOTE_CALL(r, &at, e, SYS_mremap, v->start, 0, size, MREMAP_MAYMOVE, 0, 0))
		return -1;
	if (at < 0 && at > -4096) {
		*there = true; /* for all that is known */
		return 0;
	}
	*there = !tracee_read(r->process->mem_fd, at + size - PAGE, &byte, 1, NULL);
	return remote_set_scratch(r, at, size, e);
}

static int find_more(struct fd_object *o, struct process *p, const struct vma *v, struct err *e)
{
	bool there = false;
	struct remote r;
	int failed;

	if (remote_begin(&r, p, &p->threads[0], e))
		return -1;
	failed = look_behind(&r, v, o->o.size, &there, e);
	if (remote_end(&r, failed ? NULL : e) || failed)
		return -1;
	if (there)
		o->o.size += PAGE; /* at least, which is all that matters */
	return 0;
}

int fd_page_order_note(
	struct fd_object *o, struct process *p, const struct vma *v, struct err *e)
{
	size_t count = buf_count(&o->mapped, struct fd_mapped);
	const struct fd_mapped *m = buf_at(&o->mapped, struct fd_mapped, count - 1);
	const struct fd_mapped *last = count > 1 ? m - 1 : NULL;
	bool neighbour =
		last && m->pid == last->pid && m->start == last->start + last->to - last->from;

	o->run = (neighbour ? o->run : 0) + m->to - m->from;
	if (neighbour && m->from != last->to)
		o->reordered = true;
	/* As much as is mapped in a row has been mapped at once, if not of two objects side by
	 * side: then some of it is hidden, or shows twice. */
	return o->reordered && o->run > o->o.size && !(v->flags & VMA_HUGETLB)
		       ? find_more(o, p, v, e)
		       : 0;
}

static int compare_mapped(const void *a, const void *b)
{
	const struct fd_mapped *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

int fd_page_order_check(struct fd_object *o, struct err *e)
{
	struct fd_mapped *m = o->mapped.data;
	size_t count = buf_count(&o->mapped, struct fd_mapped);
	uint64_t seen = 0;

	if (!o->reordered)
		return 0;
	qsort(m, count, sizeof(*m), compare_mapped);
	for (size_t i = 0; i < count && m[i].from <= seen; i++)
		seen = m[i].to > seen ? m[i].to : seen;
	if (seen < o->o.size)
		return err_set(e, 0,
			"%s: its pages have been put in another order (remap_file_pages, "
			"mremap), and to read one that is mapped nowhere takes "
			"CAP_CHECKPOINT_RESTORE: run trecr as root, or try again when all are "
			"mapped",
			o->text);
	return 0;
}
