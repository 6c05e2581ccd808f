/*
 * place_blocks.c - from here one copy more is made than by a read(2) in the process itself, of bytes that are in the
 * processor's cache.
 */
#include "supervisor/memory/place_blocks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/uio.h>

#include "lib/threads.h"
#include "supervisor/target/memory_limits.h"

#define PLACE_THREADS 16u /* unless it is said how many */
/* Pieces that a thread takes at a time, of so many blocks at most. */
#define TAKE         16u
#define PIECE_BLOCKS 64u

struct placing {
	const struct placed_blocks *list;
	size_t count;
	pid_t pid;
	int mem_fd;
	struct err *e;
	pthread_mutex_t lock; /* of what follows */
	size_t next;
	bool failed;
};

void place_blocks_add(struct buf *list, const struct image *img, const struct image_extent *x,
	uint32_t first, uint32_t blocks)
{
	for (uint32_t n; blocks; first += n, blocks -= n) {
		struct placed_blocks piece = {img, x, first, 0};

		n = blocks < PIECE_BLOCKS ? blocks : PIECE_BLOCKS;
		piece.blocks = n;
		buf_push(list, struct placed_blocks, &piece);
	}
}

/* process_vm_writev copies once, where ptrace allows it to this thread; the descriptor has been
 * allowed already. */
static int put_memory(
	struct placing *p, uint64_t address, void *data, size_t size, struct err *e)
{
	struct iovec local = {data, size}, remote = {(void *)address, size};

	if (process_vm_writev(p->pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	return pwrite_all(p->mem_fd, data, size, address, "the memory of the new process", e);
}

static int place_piece(
	struct placing *p, const struct placed_blocks *piece, void *data, struct err *e)
{
	uint64_t at = piece->x->address + (uint64_t)piece->first * IMAGE_BLOCK;

	if (image_read_blocks(piece->img, piece->x, piece->first, piece->blocks, data, e))
		return -1;
	return put_memory(p, at, data, (size_t)piece->blocks * IMAGE_BLOCK, e)
		       ? memory_limits_tell(p->pid, e)
		       : 0;
}

/* The next pieces for a thread; none when there are no more, or one has failed. */
static size_t take_pieces(struct placing *p, size_t *first)
{
	size_t n = 0;

	pthread_mutex_lock(&p->lock);
	if (!p->failed) {
		*first = p->next;
		n = p->count - p->next < TAKE ? p->count - p->next : TAKE;
		p->next += n;
	}
	pthread_mutex_unlock(&p->lock);
	return n;
}

/* The first error is the caller's to hear of. */
static void fail_placing(struct placing *p, const struct err *e)
{
	pthread_mutex_lock(&p->lock);
	if (!p->failed && p->e)
		*p->e = *e;
	p->failed = true;
	pthread_mutex_unlock(&p->lock);
}

static void *place_pieces(void *argument)
{
	struct placing *p = argument;
	cleanup_free void *data = xmalloc(PIECE_BLOCKS * IMAGE_BLOCK);
	struct err e = ERR_INIT;
	size_t first, n;

	while ((n = take_pieces(p, &first)))
		for (size_t i = first; i < first + n; i++)
			if (place_piece(p, &p->list[i], data, &e)) {
				fail_placing(p, &e);
				return NULL;
			}
	return NULL;
}

static unsigned count_threads(unsigned asked, size_t pieces)
{
	unsigned threads = threads_wanted(asked, PLACE_THREADS);

	return pieces / TAKE < threads ? pieces / TAKE + 1 : threads;
}

int place_blocks(const struct buf *list, pid_t pid, int mem_fd, unsigned threads, struct err *e)
{
	struct placing p = {.list = list->data,
		.count = buf_count(list, struct placed_blocks),
		.pid = pid,
		.mem_fd = mem_fd,
		.e = e,
		.lock = PTHREAD_MUTEX_INITIALIZER};
	unsigned count = count_threads(threads, p.count), started = 0;
	pthread_t ids[THREADS_MOST];
	sigset_t all, mask;

	/* Signals are for the thread that called us. Fewer threads only make it slower. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	while (started + 1 < count && !thread_start(&ids[started], place_pieces, &p))
		started++;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	place_pieces(&p);
	for (unsigned i = 0; i < started; i++)
		pthread_join(ids[i], NULL);
	return p.failed ? -1 : 0;
}
