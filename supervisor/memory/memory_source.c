/* memory_source.c - memory is read from the process, or from its copy when it runs on. */
#include "supervisor/memory/memory_source.h"

#include <sys/uio.h>

/*
 * process_vm_readv is quicker for huge pages, but wants readable pages, and it pins them: of private pages that
 * are mapped by several processes the kernel makes a copy for this one first (gup_must_unshare(),
 * mm/gup.c), so the program would take more memory from then on. /proc/PID/mem reads all, and pins none.
 */
int memory_source_read(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	struct memory_source *source = context;
	struct dump *d = source->dump;
	struct process *p = source->copied && d->copy ? d->copy : d->process;
	struct iovec local = {data, size};
	struct iovec remote = {(void *)(address + source->delta), size};

	if (p == d->process && !source->in_common &&
		process_vm_readv(p->task, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	if (tracee_read(p->mem_fd, address + source->delta, data, size, e))
		return err_prefix(e, "process %d (%s)", p->pid, p->comm);
	return 0;
}

struct memory_source *memory_source_new(struct dump *d, const struct vma *v, uint64_t delta)
{
	struct memory_source *s = xmalloc(sizeof(*s));

	s->dump = d;
	s->copied = false;
	s->in_common = v->in_common && !v->shared;
	s->delta = delta;
	buf_push(&d->contexts, void *, (void *)&s);
	return s;
}

void memory_source_run(struct dump *d, struct memory_source *source, uint64_t start,
	uint64_t end, bool keep_zero, bool clean)
{
	struct block_run run = {
		.clean = clean,
		.address = start,
		.size = end - start,
		.keep_zero = keep_zero,
		.read = memory_source_read,
		.context = source,
	};

	if (start == end)
		return;
	buf_push(source->copied ? &d->copied_runs : &d->runs, struct block_run, &run);
	d->memory_bytes += run.size;
}
