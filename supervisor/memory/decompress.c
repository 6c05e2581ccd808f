/*
 * Compressed blocks of a process that comes back: decompressed here, by several threads, and
 * written into its memory when that has been mapped. The loader has no library to do it with;
 * from here one copy more is made, of bytes that are in the processor's cache.
 */
#include "supervisor/memory/decompress.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>

#include "lib/threads.h"
#include "supervisor/memory/lazy_ranges.h"
#include "supervisor/memory/memory_restore.h"
#include "supervisor/target/memory_limits.h"

#define UNPACK_THREADS 16u /* unless it is said how many */
/* Extents that a thread takes at a time: of a mebibyte in most cases. */
#define TAKE 16u

struct unpacking {
	struct new_process *np;
	const struct image_extent *extents;
	size_t count;
	pthread_mutex_t lock; /* of what follows */
	size_t next;
	bool failed;
};

/* Memory of GPUs is for the lower half to write (split/device_restore.c). A pack that is in
 * part of lazy memory comes as a whole: what writes to that, waits for it to be filled. */
static bool is_ours(const struct new_process *np, const struct image_extent *x)
{
	uint64_t end = x->address + (uint64_t)x->blocks * IMAGE_BLOCK;
	bool lazy;

	if (x->kind != IMAGE_EXTENT_PACKED || restore_plan_is_on_device(&np->plan, x))
		return false;
	return address_ranges_part(&np->plan.lazy_ranges, x->address, end, &lazy) < end || !lazy;
}

/* process_vm_writev copies once, where ptrace allows it to this thread; the descriptor has been
 * allowed already. */
static int put_memory(
	struct new_process *np, uint64_t address, void *data, size_t size, struct err *e)
{
	struct iovec local = {data, size}, remote = {(void *)address, size};

	if (process_vm_writev(np->process.pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	return pwrite_all(
		np->process.mem_fd, data, size, address, "the memory of the new process", e);
}

static int unpack_extent(
	struct new_process *np, const struct image_extent *x, void *data, struct err *e)
{
	if (image_read_blocks(np->img, x, 0, x->blocks, data, e))
		return -1;
	return put_memory(np, x->address, data, (size_t)x->blocks * IMAGE_BLOCK, e)
		       ? memory_limits_tell(np->process.pid, e)
		       : 0;
}

/* The next extents for a thread to look at; none when there are no more, or one has failed. */
static size_t take_block_run(struct unpacking *u, size_t *first)
{
	size_t n = 0;

	pthread_mutex_lock(&u->lock);
	if (!u->failed) {
		*first = u->next;
		n = u->count - u->next < TAKE ? u->count - u->next : TAKE;
		u->next += n;
	}
	pthread_mutex_unlock(&u->lock);
	return n;
}

/* The first error is the caller's to hear of. */
static void fail_unpacking(struct unpacking *u, const struct err *e)
{
	pthread_mutex_lock(&u->lock);
	if (!u->failed && u->np->e)
		*u->np->e = *e;
	u->failed = true;
	pthread_mutex_unlock(&u->lock);
}

static void *unpack_extents(void *argument)
{
	struct unpacking *u = argument;
	cleanup_free void *data = xmalloc(IMAGE_PACK_BLOCKS * IMAGE_BLOCK);
	struct err e = ERR_INIT;
	size_t first, n;

	while ((n = take_block_run(u, &first)))
		for (size_t i = first; i < first + n; i++)
			if (is_ours(u->np, &u->extents[i]) &&
				unpack_extent(u->np, &u->extents[i], data, &e)) {
				fail_unpacking(u, &e);
				return NULL;
			}
	return NULL;
}

static unsigned count_threads(unsigned asked, size_t extents)
{
	unsigned threads = threads_wanted(asked, UNPACK_THREADS);

	return extents / TAKE < threads ? extents / TAKE + 1 : threads;
}

static int unpack_all(struct unpacking *u)
{
	unsigned count = count_threads(u->np->plan.wanted_threads, u->count), started = 0;
	pthread_t threads[THREADS_MOST];
	sigset_t all, mask;

	/* Signals are for the thread that called us. Fewer threads only make it slower. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	while (started + 1 < count && !thread_start(&threads[started], unpack_extents, u))
		started++;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	unpack_extents(u);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	return u->failed ? -1 : 0;
}

int new_process_unpack(struct new_process *np)
{
	struct unpacking u = {.np = np, .lock = PTHREAD_MUTEX_INITIALIZER};

	if (!(np->img->super.incompat & IMAGE_INCOMPAT_PACKS) || !np->plan.filled)
		return 0;
	u.extents = image_extents(np->img, 0, &u.count);
	return u.count ? unpack_all(&u) : 0;
}
