/* memory_source.c - memory is read from the process, or from its copy when it runs on. */
#include "supervisor/memory/memory_source.h"

#include <sys/uio.h>

#define PIECES_MOST 256 /* CHUNK_BLOCKS of ckpt/chunk.h */

/*
 * process_vm_readv is quicker for huge pages, but wants readable pages, and it pins them: of private pages that
 * are mapped by several processes the kernel makes a copy for this one first (gup_must_unshare(),
 * mm/gup.c), so the program would take more memory from then on. /proc/PID/mem reads all, and pins none.
 */
static bool is_pinned(const struct memory_source *source)
{
	const struct dump *d = source->dump;

	return !(source->copied && d->copy) && !source->in_common;
}

int memory_source_read(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	struct memory_source *source = context;
	struct dump *d = source->dump;
	struct process *p = source->copied && d->copy ? d->copy : d->process;
	struct iovec local = {data, size};
	struct iovec remote = {(void *)(address + source->delta), size};

	if (is_pinned(source) &&
		process_vm_readv(p->task, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	if (tracee_read(p->mem_fd, address + source->delta, data, size, e))
		return err_prefix(e, "process %d (%s)", p->pid, p->comm);
	return 0;
}

/* All of them by one call. */
static bool read_at_once(
	const struct memory_source *source, const struct block_piece *pieces, size_t count)
{
	struct iovec local[PIECES_MOST], remote[PIECES_MOST];
	ssize_t size = 0;

	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){pieces[i].data, pieces[i].size};
		remote[i] = (struct iovec){
			(void *)(pieces[i].address + source->delta), pieces[i].size};
		size += pieces[i].size;
	}
	return process_vm_readv(source->dump->process->task, local, count, remote, count, 0) ==
	       size;
}

static int read_pieces(
	void *context, const struct block_piece *pieces, size_t count, struct err *e)
{
	BUG_ON(count > PIECES_MOST);
	if (is_pinned(context) && read_at_once(context, pieces, count))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (memory_source_read(
			    context, pieces[i].address, pieces[i].data, pieces[i].size, e))
			return -1;
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

struct memory_source *memory_source_own(struct dump *d, const struct vma *v, bool copied)
{
	struct memory_source **own = &d->own_sources[copied][v->in_common && !v->shared];

	if (!*own) {
		*own = memory_source_new(d, v, 0);
		(*own)->copied = copied;
	}
	return *own;
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
		.read_pieces = read_pieces,
		.context = source,
	};

	if (start == end)
		return;
	buf_push(source->copied ? &d->copied_runs : &d->runs, struct block_run, &run);
	d->memory_bytes += run.size;
}
