#include "ckpt/blocks.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "ckpt/hash.h"
#include "lib/threads.h"
#include "lib/util.h"

#define CHUNK_BLOCKS 256u
#define CHUNK_SIZE   ((size_t)CHUNK_BLOCKS * IMAGE_BLOCK)
#define MAX_THREADS  4u
/* To compress takes more of the processors' time than of memory's or the disk's. */
#define MAX_PACKERS 16u

/* What compression has to save: less is not worth the work of decompressing. */
#define worthwhile(size) ((size) - (size) / 8)

/* What becomes of a block. */
enum fate {
	FATE_STORE,
	FATE_DROP,   /* zero, and reads as zero without being recorded */
	FATE_ZERO,   /* zero, to be recorded */
	FATE_PARENT, /* in another checkpoint's file */
	FATE_PACKED, /* one of chunk.packs has it */
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
		const struct image_pack *pack; /* NULL: it is not compressed */
		uint32_t skip;                 /* in the pack */
	} parent[CHUNK_BLOCKS];                /* FATE_PARENT */

	enum image_pack_method method;
	struct packer *packer; /* NULL: nothing is to be compressed */
	uint8_t *packed;       /* CHUNK_SIZE */
	size_t packed_size;    /* that the packs take of it */
	struct packed_run packs[CHUNK_BLOCKS];
	size_t pack_count;
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

/* The parent's extent that has block @i, which may be @last, that of the one before. */
static const struct image_extent *parent_extent(const struct chunk *c, uint32_t i,
	const struct block_job *job, const struct image_extent *last)
{
	uint64_t address = block_address(c, i);

	if (last && address >= last->address &&
		(address - last->address) / IMAGE_BLOCK < last->blocks)
		return last;
	return image_find(job->parent, c->run->object, address);
}

static uint32_t number_in(const struct image_extent *x, const struct chunk *c, uint32_t i)
{
	return (block_address(c, i) - x->address) / IMAGE_BLOCK;
}

/* Block @i is where the parent's extent @x has it. */
static void refer_to_parent(
	struct chunk *c, uint32_t i, const struct block_job *job, const struct image_extent *x)
{
	uint32_t nth = number_in(x, c, i);

	c->fate[i] = FATE_PARENT;
	c->parent[i] = (struct place){
		.source = job->parent_source[x->source],
		.offset = x->file_offset + (uint64_t)nth * IMAGE_BLOCK,
		.pack = image_pack_of(job->parent, x),
		.skip = x->skip + nth,
	};
}

/* Blocks that the parent has with the same hash become references to where the parent's are:
 * in its own file or, flattened, in that of one of its ancestors. */
static void filter_parent(struct chunk *c, const struct block_job *job)
{
	const struct image_extent *x = NULL;

	for (uint32_t i = 0; i < c->blocks; i++) {
		if (c->fate[i] != FATE_STORE)
			continue;
		x = parent_extent(c, i, job, x);
		if (x && image_extent_is_stored(x) &&
			!memcmp(c->hash[i], image_hash(job->parent, x, number_in(x, c, i)),
				IMAGE_HASH_SIZE))
			refer_to_parent(c, i, job, x);
	}
}

/* Blocks that are known to be as they were need not be read. False: the parent has not all of
 * them, as it has none that are zero. */
static bool filter_clean(struct chunk *c, const struct block_job *job)
{
	const struct image_extent *x = NULL;

	for (uint32_t i = 0; i < c->blocks; i++) {
		x = parent_extent(c, i, job, x);
		if (!x || !image_extent_is_stored(x))
			return false;
		memcpy(c->hash[i], image_hash(job->parent, x, number_in(x, c, i)),
			IMAGE_HASH_SIZE);
		refer_to_parent(c, i, job, x);
	}
	return true;
}

/* After all the filters: whether it would have been right not to read the chunk. */
static int check_clean(const struct chunk *c, const struct block_job *job, struct err *e)
{
	for (uint32_t i = 0; i < c->blocks; i++) {
		const struct image_extent *x = parent_extent(c, i, job, NULL);
		bool was_zero = !x || x->kind == IMAGE_EXTENT_ZERO;

		if (was_zero ? c->fate[i] != FATE_DROP && c->fate[i] != FATE_ZERO
			     : c->fate[i] != FATE_PARENT)
			return err_set(e, 0,
				"the block at %#lx was taken for unchanged, and is not",
				(unsigned long)block_address(c, i));
	}
	return 0;
}

/* Compress blocks [first, end), if that makes them smaller. */
static void pack_blocks(struct chunk *c, uint32_t first, uint32_t end)
{
	size_t size = (size_t)(end - first) * IMAGE_BLOCK, used;
	struct packed_run *run = &c->packs[c->pack_count];

	used = packer_pack(c->packer, block_data(c, first), size, c->packed + c->packed_size,
		worthwhile(size));
	if (!used)
		return;
	*run = (struct packed_run){
		.address = block_address(c, first),
		.hashes = c->hash[first],
		.pack = {.file_offset = c->packed_size,
			.size = used,
			.used = used,
			.blocks = end - first,
			.method = c->method},
	};
	c->packed_size += used;
	c->pack_count++;
	for (uint32_t i = first; i < end; i++)
		c->fate[i] = FATE_PACKED;
}

/* That was in vain. */
static void undo_packs(struct chunk *c)
{
	for (uint32_t i = 0; i < c->blocks; i++)
		if (c->fate[i] == FATE_PACKED)
			c->fate[i] = FATE_STORE;
	c->pack_count = 0;
}

/* Packs lie one behind the other; the last is filled up to the end of its page with zeros. */
static void finish_packs(struct chunk *c)
{
	size_t rest = align_up(c->packed_size, IMAGE_BLOCK) - c->packed_size, blocks = 0;

	for (size_t i = 0; i < c->pack_count; i++)
		blocks += c->packs[i].pack.blocks;
	if (c->packed_size + rest >= blocks * IMAGE_BLOCK) {
		undo_packs(c);
		return;
	}
	memset(c->packed + c->packed_size, 0, rest);
	c->packed_size += rest;
	c->packs[c->pack_count - 1].pack.size += rest;
	for (size_t i = 0; i < c->pack_count; i++) {
		struct image_pack *p = &c->packs[i].pack;

		p->hash = hash64(c->packed + p->file_offset, p->size);
	}
}

/* Blocks that are left to be stored become packs, cut at multiples of their size. */
static void filter_pack(struct chunk *c)
{
	uint32_t end;

	c->packed_size = 0;
	c->pack_count = 0;
	for (uint32_t first = 0; first < c->blocks; first = end) {
		end = first + 1;
		if (c->fate[first] != FATE_STORE)
			continue;
		while (end < c->blocks && c->fate[end] == FATE_STORE &&
			block_address(c, end) / IMAGE_BLOCK % IMAGE_PACK_BLOCKS)
			end++;
		pack_blocks(c, first, end);
	}
	if (c->pack_count)
		finish_packs(c);
}

/* Whether block @i continues what block @i - 1 was. */
static bool continues(const struct chunk *c, uint32_t i)
{
	const struct place *before = &c->parent[i - 1], *this = &c->parent[i];

	if (c->fate[i] != c->fate[i - 1])
		return false;
	if (c->fate[i] != FATE_PARENT)
		return true;
	if (before->source != this->source || before->pack != this->pack)
		return false;
	return this->pack ? before->skip + 1 == this->skip
			  : before->offset + IMAGE_BLOCK == this->offset;
}

static int sink_run(
	struct chunk *c, struct image_writer *w, uint32_t first, uint32_t blocks, struct err *e)
{
	const struct place *parent = &c->parent[first];
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
		if (parent->pack)
			image_writer_pack_reference(w, object, address, parent->source,
				parent->pack, parent->skip, blocks, c->hash[first]);
		else
			image_writer_reference(w, object, address, parent->source,
				parent->offset, blocks, c->hash[first]);
		return 0;
	case FATE_PACKED: /* written already, all at once */
	case FATE_DROP:
		return 0;
	}
	BUG();
}

static int write_chunk(struct chunk *c, struct image_writer *w, struct err *e)
{
	uint32_t end;

	if (c->pack_count && image_writer_packs(w, c->run->object, c->packed, c->packed_size,
				     c->packs, c->pack_count, e) < 0)
		return -1;
	for (uint32_t first = 0; first < c->blocks; first = end) {
		end = first + 1;
		while (end < c->blocks && continues(c, end))
			end++;
		if (sink_run(c, w, first, end - first, e) < 0)
			return -1;
	}
	return 0;
}

static int filter_chunk(struct chunk *c, const struct block_job *job, struct err *e)
{
	bool clean = c->run->clean && job->parent;

	c->pack_count = 0;
	if (clean && !job->check_clean && filter_clean(c, job))
		return 0;
	if (filter_read(c, e) < 0)
		return -1;
	filter_zero(c);
	filter_hash(c);
	if (job->parent)
		filter_parent(c, job);
	if (clean && job->check_clean && check_clean(c, job, e) < 0)
		return -1;
	if (c->packer)
		filter_pack(c);
	return 0;
}

static uint64_t stored_bytes(const struct chunk *c)
{
	uint64_t bytes = c->pack_count ? c->packed_size : 0;

	for (uint32_t i = 0; i < c->blocks; i++)
		bytes += c->fate[i] == FATE_STORE ? IMAGE_BLOCK : 0;
	return bytes;
}

static int save_chunk(struct chunk *c, const struct block_job *job, struct err *e)
{
	if (job->cancelled && job->cancelled(job->cancel_context, e))
		return -1;
	if (filter_chunk(c, job, e) < 0)
		return -1;
	if (job->throttle && throttle_wait(job->throttle, stored_bytes(c), job->cancelled,
				     job->cancel_context, e) < 0)
		return -1;
	if (write_chunk(c, job->writer, e) < 0)
		return -1;
	if (job->done)
		__atomic_fetch_add(
			job->done, (uint64_t)c->blocks * IMAGE_BLOCK, __ATOMIC_RELAXED);
	return 0;
}

/* The first error is the caller's to hear of; all workers stop at it. */
static void fail_work(struct work *w, const struct err *e)
{
	pthread_mutex_lock(&w->lock);
	if (!w->failed && w->e)
		*w->e = *e;
	w->failed = true;
	pthread_mutex_unlock(&w->lock);
}

static void free_chunk(struct chunk *c)
{
	packer_free(c->packer);
	free(c->packed);
	free(c->data);
	free(c);
}

static uint8_t *new_buffer(void)
{
	void *data;

	return posix_memalign(&data, IMAGE_BLOCK, CHUNK_SIZE) ? NULL : data;
}

/* NULL: there is no memory for it. */
static struct chunk *new_chunk(const struct pack_choice *choice)
{
	struct chunk *c = xcalloc(1, sizeof(*c));

	c->method = choice->method;
	c->data = new_buffer();
	if (c->method) {
		c->packer = packer_new(choice);
		c->packed = new_buffer();
	}
	if (c->data && (!c->method || (c->packer && c->packed)))
		return c;
	free_chunk(c);
	return NULL;
}

static void *write_chunks(void *arg)
{
	struct err e = ERR_INIT;
	struct work *w = arg;
	struct chunk *c = new_chunk(&w->job->pack);

	if (!c) {
		err_set(&e, 0, "cannot save memory: no memory for a buffer");
		fail_work(w, &e);
		return NULL;
	}
	while (next_chunk(w, c)) {
		if (save_chunk(c, w->job, &e) < 0) {
			fail_work(w, &e);
			break;
		}
	}
	free_chunk(c);
	return NULL;
}

/* Threads to use, the calling one included. */
static unsigned count_threads(const struct block_job *job)
{
	unsigned most = job->pack.method ? MAX_PACKERS : MAX_THREADS;
	unsigned threads = threads_wanted(job->threads, most);
	uint64_t chunks = 0;

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
	while (n < count && !thread_start(&threads[n], write_chunks, w))
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
	write_chunks(&w);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	return w.failed ? -1 : 0;
}
