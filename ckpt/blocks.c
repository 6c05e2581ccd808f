#include "ckpt/blocks.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "ckpt/hash.h"
#include "lib/util.h"

#define CHUNK_BLOCKS 256u
#define CHUNK_SIZE   ((size_t)CHUNK_BLOCKS * IMAGE_BLOCK)
#define MAX_THREADS  4u

/* What becomes of a block. */
enum fate {
	FATE_STORE,
	FATE_DROP,   /* zero, and reads as zero without being recorded */
	FATE_ZERO,   /* zero, to be recorded */
	FATE_PARENT, /* in another checkpoint's file */
};

/* A worker's piece of a run, and what the filters found out about its blocks. */
struct chunk {
	const struct block_run *run;
	uint64_t address;
	uint32_t blocks;
	uint8_t *data; /* page-aligned, CHUNK_SIZE */
	enum fate fate[CHUNK_BLOCKS];
	uint8_t hash[CHUNK_BLOCKS][IMAGE_HASH_SIZE];
	struct place {
		uint32_t source;
		uint64_t offset;
	} parent[CHUNK_BLOCKS]; /* FATE_PARENT */
};

/* Shared by the workers. */
struct work {
	const struct block_job *job;
	pthread_mutex_t lock; /* of what follows */
	size_t run;           /* the next chunk: run and offset in it */
	uint64_t offset;
	bool failed;
	struct err *e;
};

/* Take the next chunk; false when there is none or the work has ended. Chunks end at multiples
 * of their size, so that the same memory is cut the same way in every checkpoint. */
static bool next_chunk(struct work *w, struct chunk *c)
{
	const struct block_job *job = w->job;
	bool found = false;

	pthread_mutex_lock(&w->lock);
	while (w->run < job->run_count && w->offset >= job->runs[w->run].size) {
		w->run++;
		w->offset = 0;
	}
	if (w->run < job->run_count && !w->failed) {
		const struct block_run *run = &job->runs[w->run];
		uint64_t left = run->size - w->offset, size;

		c->run = run;
		c->address = run->address + w->offset;
		size = CHUNK_SIZE - c->address % CHUNK_SIZE;
		if (size > left)
			size = left;
		c->blocks = size / IMAGE_BLOCK;
		w->offset += size;
		found = true;
	}
	pthread_mutex_unlock(&w->lock);
	return found;
}

static uint8_t *block_data(const struct chunk *c, uint32_t i)
{
	return c->data + (size_t)i * IMAGE_BLOCK;
}

static uint64_t block_address(const struct chunk *c, uint32_t i)
{
	return c->address + (uint64_t)i * IMAGE_BLOCK;
}

static int filter_read(struct chunk *c, struct err *e)
{
	return c->run->read(
		c->run->context, c->address, c->data, (size_t)c->blocks * IMAGE_BLOCK, e);
}

static void filter_zero(struct chunk *c)
{
	enum fate zero = c->run->keep_zero ? FATE_ZERO : FATE_DROP;

	for (uint32_t i = 0; i < c->blocks; i++)
		c->fate[i] = is_zero(block_data(c, i), IMAGE_BLOCK) ? zero : FATE_STORE;
}

static void filter_hash(struct chunk *c)
{
	for (uint32_t i = 0; i < c->blocks; i++)
		if (c->fate[i] == FATE_STORE)
			hash128(block_data(c, i), IMAGE_BLOCK, c->hash[i]);
}

/* Blocks that the parent has with the same hash become references to where the parent's are:
 * in its own file or, flattened, in that of one of its ancestors. */
static void filter_parent(struct chunk *c, const struct block_job *job)
{
	const struct image_extent *x = NULL;

	for (uint32_t i = 0; i < c->blocks; i++) {
		uint64_t address = block_address(c, i), nth;

		if (c->fate[i] != FATE_STORE)
			continue;
		if (!x || address < x->address ||
			(address - x->address) / IMAGE_BLOCK >= x->blocks)
			x = image_find(job->parent, c->run->object, address);
		if (!x || x->kind != IMAGE_EXTENT_DATA)
			continue;
		nth = (address - x->address) / IMAGE_BLOCK;
		if (memcmp(c->hash[i], image_hash(job->parent, x, nth), IMAGE_HASH_SIZE))
			continue;
		c->fate[i] = FATE_PARENT;
		c->parent[i].source = job->parent_source[x->source];
		c->parent[i].offset = x->file_offset + nth * IMAGE_BLOCK;
	}
}

/* Whether block @i goes on what block @i - 1 was. */
static bool continues(const struct chunk *c, uint32_t i)
{
	const struct place *before = &c->parent[i - 1], *this = &c->parent[i];

	if (c->fate[i] != c->fate[i - 1])
		return false;
	return c->fate[i] != FATE_PARENT ||
	       (before->source == this->source && before->offset + IMAGE_BLOCK == this->offset);
}

static int sink_run(
	struct chunk *c, struct image_writer *w, uint32_t first, uint32_t blocks, struct err *e)
{
	uint64_t address = block_address(c, first);
	uint32_t object = c->run->object;

	switch (c->fate[first]) {
	case FATE_STORE:
		return image_writer_data(
			w, object, address, block_data(c, first), blocks, c->hash[first], e);
	case FATE_ZERO:
		image_writer_zero(w, object, address, blocks);
		return 0;
	case FATE_PARENT:
		image_writer_reference(w, object, address, c->parent[first].source,
			c->parent[first].offset, blocks, c->hash[first]);
		return 0;
	case FATE_DROP:
		return 0;
	}
	BUG();
}

static int sink(struct chunk *c, struct image_writer *w, struct err *e)
{
	uint32_t end;

	for (uint32_t first = 0; first < c->blocks; first = end) {
		end = first + 1;
		while (end < c->blocks && continues(c, end))
			end++;
		if (sink_run(c, w, first, end - first, e) < 0)
			return -1;
	}
	return 0;
}

static int save_chunk(struct chunk *c, const struct block_job *job, struct err *e)
{
	if (job->cancelled && job->cancelled(job->cancel_context, e))
		return -1;
	if (filter_read(c, e) < 0)
		return -1;
	filter_zero(c);
	filter_hash(c);
	if (job->parent)
		filter_parent(c, job);
	if (sink(c, job->writer, e) < 0)
		return -1;
	if (job->done)
		__atomic_fetch_add(
			job->done, (uint64_t)c->blocks * IMAGE_BLOCK, __ATOMIC_RELAXED);
	return 0;
}

/* The first error is the caller's to hear of; all workers stop at it. */
static void fail(struct work *w, const struct err *e)
{
	pthread_mutex_lock(&w->lock);
	if (!w->failed && w->e)
		*w->e = *e;
	w->failed = true;
	pthread_mutex_unlock(&w->lock);
}

static void *worker(void *arg)
{
	cleanup_free struct chunk *c = xcalloc(1, sizeof(*c));
	cleanup_free void *data = NULL;
	struct err e = ERR_INIT;
	struct work *w = arg;

	if (posix_memalign(&data, IMAGE_BLOCK, CHUNK_SIZE)) {
		data = NULL;
		err_set(&e, 0, "cannot save memory: no memory for a buffer");
		fail(w, &e);
		return NULL;
	}
	c->data = data;
	while (next_chunk(w, c)) {
		if (save_chunk(c, w->job, &e) < 0) {
			fail(w, &e);
			break;
		}
	}
	return NULL;
}

static unsigned usable_cpus(void)
{
	cpu_set_t set;

	/* Fails on machines with more processors than the set has room for: plenty. */
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return MAX_THREADS;
	return CPU_COUNT(&set);
}

/* Threads to use, the calling one included. */
static unsigned count_threads(const struct block_job *job)
{
	unsigned threads = job->threads, most = threads ? threads : MAX_THREADS;
	uint64_t chunks = 0;

	if (!threads)
		threads = usable_cpus();
	if (threads > most)
		threads = most;
	for (size_t i = 0; i < job->run_count && chunks < threads; i++)
		chunks += (job->runs[i].size + CHUNK_SIZE - 1) / CHUNK_SIZE;
	return chunks < threads ? chunks : threads;
}

/* Start @count threads with all signals blocked: those are for the thread that called us.
 * Returns how many there are; fewer only make it slower. */
static unsigned start_workers(struct work *w, pthread_t *threads, unsigned count)
{
	sigset_t all, old;
	unsigned n = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (n < count && !thread_start(&threads[n], worker, w))
		n++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return n;
}

int blocks_write(const struct block_job *job, struct err *e)
{
	struct work w = {.job = job, .lock = PTHREAD_MUTEX_INITIALIZER, .e = e};
	unsigned count = count_threads(job), started;
	cleanup_free pthread_t *threads = xcalloc(count, sizeof(*threads));

	if (!count)
		return 0;
	started = start_workers(&w, threads, count - 1);
	worker(&w);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	return w.failed ? -1 : 0;
}
