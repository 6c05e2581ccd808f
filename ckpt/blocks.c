/*
 * blocks.c - the threads that take chunks of runs, in one pass, or in two where hashes are known;
 * what they do with a chunk is in chunk.c. With several files, each thread writes one of its own as long as there are any
 * that nobody has begun: then no two wait for each other, and small ones are written at the same time, too.
 */
#include "ckpt/blocks.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/chunk.h"
#include "lib/threads.h"
#include "lib/util.h"

/* More threads only wait for each other, unless each has a file of its own. */
#define MAX_THREADS 4u
/* To compress takes more of the processors' time than of memory's or the disk's. */
#define MAX_PACKERS 16u

/* A chunk of which some blocks have to be read. */
struct left {
	size_t file, run;
	uint64_t address;
	uint32_t blocks;
	struct chunk_blocks wanted;
};

#define NO_FILE SIZE_MAX

/* The next block of the runs that are known not to have changed, or of the others. */
struct cursor {
	size_t run;
	uint64_t offset; /* in the run */
	bool clean;
};

/* What is to be written to one file. Of runs that have not changed nothing is read: the others, which lie between
 * them, make chunks without them. */
struct file {
	const struct blocks_to_write *to_write;
	struct cursor changed, clean;
};

/* Shared by the workers. */
struct work {
	bool settling;        /* what is known by hashes; then all that is to be read */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t more;  /* a file has been added, or no more are to come */
	bool is_open;         /* more are to come */
	size_t count;
	struct file *files;
	size_t next_file; /* the first that no worker has begun */
	struct buf left;  /* struct left: chunks to be read after the last run, */
	size_t next_left; /* and the next of them */
	bool failed;
	struct err *e;
};

/* Whether the chunks of a run are for this pass, from its beginning to its end. */
static bool is_for_pass(const struct work *w, const struct block_run *run)
{
	return w->settling == !!run->hash;
}

static size_t chunk_size(const struct blocks_to_write *to_write)
{
	return to_write->pack.method ? CHUNK_SIZE : CHUNK_SIZE_STORED;
}

/* The run that the next block of @at is in; NULL: there is none. */
static const struct block_run *find_run(
	const struct work *w, const struct blocks_to_write *to_write, struct cursor *at)
{
	for (; at->run < to_write->run_count; at->run++, at->offset = 0) {
		const struct block_run *run = &to_write->runs[at->run];

		if (at->offset < run->size && is_for_pass(w, run) && run->clean == at->clean)
			return run;
	}
	return NULL;
}

/* How many blocks of @run are for one chunk, from @at on: chunks end at multiples of @most bytes, so that the same memory
 * is cut the same way in every checkpoint. */
static uint32_t count_piece(const struct block_run *run, const struct cursor *at, uint64_t most)
{
	uint64_t left = run->size - at->offset;
	uint64_t size = most - (run->address + at->offset) % most;

	return (size < left ? size : left) / IMAGE_BLOCK;
}

/* The next chunk of one file; false: there is none. Of one that is settled without being read the fewer there are,
 * the better. */
static bool take_at(const struct work *w, const struct blocks_to_write *to_write,
	struct cursor *at, struct chunk *c)
{
	const struct block_run *run = find_run(w, to_write, at);
	uint64_t most = w->settling || at->clean ? CHUNK_SIZE : chunk_size(to_write);
	uint32_t blocks;

	if (!run)
		return false;
	blocks = count_piece(run, at, most);
	chunk_begin(c, run, run->address + at->offset, blocks);
	at->offset += (uint64_t)blocks * IMAGE_BLOCK;
	while ((run = find_run(w, to_write, at)) && chunk_may_add(c, run)) {
		blocks = count_piece(run, at, most);
		if (c->blocks + blocks > most / IMAGE_BLOCK)
			break;
		chunk_add(c, run, run->address + at->offset, blocks);
		at->offset += (uint64_t)blocks * IMAGE_BLOCK;
	}
	return true;
}

static bool take_of_file(const struct work *w, struct file *f, struct chunk *c)
{
	return take_at(w, f->to_write, &f->changed, c) || take_at(w, f->to_write, &f->clean, c);
}

static bool take_left(struct work *w, size_t *file, struct chunk *c)
{
	const struct left *left;

	if (w->settling || w->next_left == buf_count(&w->left, struct left))
		return false;
	left = buf_at(&w->left, struct left, w->next_left++);
	*file = left->file;
	chunk_begin(c, &w->files[*file].to_write->runs[left->run], left->address, left->blocks);
	c->wanted = left->wanted;
	return true;
}

/* Of the file that the worker is at, else of one that nobody has begun, else of any. */
static bool take_chunk(struct work *w, size_t *file, struct chunk *c)
{
	if (*file < w->count && take_of_file(w, &w->files[*file], c))
		return true;
	while (w->next_file < w->count) {
		*file = w->next_file++;
		if (take_of_file(w, &w->files[*file], c))
			return true;
	}
	for (*file = 0; *file < w->count; ++*file)
		if (take_of_file(w, &w->files[*file], c))
			return true;
	*file = NO_FILE;
	return take_left(w, file, c);
}

/* Take the next chunk; false when there is none or the work has ended. *file is the one that the worker is at, NO_FILE
 * at first. */
static bool next_chunk(struct work *w, size_t *file, struct chunk *c)
{
	bool found;

	pthread_mutex_lock(&w->lock);
	while (!(found = !w->failed && take_chunk(w, file, c)) && w->is_open && !w->failed)
		pthread_cond_wait(&w->more, &w->lock);
	pthread_mutex_unlock(&w->lock);
	return found;
}

/* Blocks [@first, @end) of @c. Under the lock. */
static void leave_piece(
	struct work *w, size_t file, const struct chunk *c, uint32_t first, uint32_t end)
{
	struct left left = {.file = file,
		.run = c->run - w->files[file].to_write->runs,
		.address = chunk_address(c, first),
		.blocks = end - first};
	bool any = false;

	for (uint32_t i = first; i < end; i++) {
		if (!chunk_has(&c->wanted, i))
			continue;
		left.wanted.bits[(i - first) / 64] |= 1ull << (i - first) % 64;
		any = true;
	}
	if (any)
		buf_push(&w->left, struct left, &left);
}

/* What is to be read of it becomes chunks of the usual size. */
static void leave_chunk(struct work *w, size_t file, const struct chunk *c)
{
	uint32_t size = chunk_size(w->files[file].to_write) / IMAGE_BLOCK, end;

	pthread_mutex_lock(&w->lock);
	for (uint32_t first = 0; first < c->blocks; first = end) {
		end = first + size - chunk_address(c, first) / IMAGE_BLOCK % size;
		if (end > c->blocks)
			end = c->blocks;
		leave_piece(w, file, c, first, end);
	}
	pthread_mutex_unlock(&w->lock);
}

static void count_done(const struct blocks_to_write *to_write, uint64_t blocks)
{
	if (to_write->done)
		__atomic_fetch_add(to_write->done, blocks * IMAGE_BLOCK, __ATOMIC_RELAXED);
}

static int record_known(struct chunk *c, struct work *w, size_t file, struct err *e)
{
	const struct blocks_to_write *to_write = w->files[file].to_write;
	bool left;

	if (chunk_record_known(c, to_write, &left, e) < 0)
		return -1;
	if (left)
		leave_chunk(w, file, c);
	count_done(to_write, c->blocks - (left ? chunk_wanted_blocks(c) : 0));
	return 0;
}

static int save_chunk(struct chunk *c, struct work *w, size_t file, struct err *e)
{
	const struct blocks_to_write *to_write = w->files[file].to_write;
	uint32_t blocks = chunk_wanted_blocks(c);

	if (to_write->cancelled && to_write->cancelled(to_write->cancel_context, e))
		return -1;
	if (w->settling)
		return record_known(c, w, file, e);
	if (chunk_filter(c, to_write, e) < 0)
		return -1;
	if (to_write->throttle && throttle_wait(to_write->throttle, chunk_stored_bytes(c),
					  to_write->cancelled, to_write->cancel_context, e) < 0)
		return -1;
	if (chunk_write(c, to_write->writer, e) < 0)
		return -1;
	count_done(to_write, blocks);
	return 0;
}

/* The first error is the caller's to hear of; all workers stop at it. */
static void fail_work(struct work *w, const struct err *e)
{
	pthread_mutex_lock(&w->lock);
	if (!w->failed && w->e)
		*w->e = *e;
	w->failed = true;
	pthread_cond_broadcast(&w->more);
	pthread_mutex_unlock(&w->lock);
}

static void write_chunks(struct work *w, struct chunk *c)
{
	struct err e = ERR_INIT;
	size_t file = NO_FILE;

	while (next_chunk(w, &file, c)) {
		if (save_chunk(c, w, file, &e) < 0) {
			fail_work(w, &e);
			break;
		}
	}
}

/* A worker without memory for a buffer leaves its part to the others. */
static void *work_along(void *arg)
{
	struct work *w = arg;
	struct chunk *c = chunk_new(&w->files[0].to_write->pack);

	if (c) {
		write_chunks(w, c);
		chunk_free(c);
	}
	return NULL;
}

/* The buffer of the thread that must not do without, to be made before others take the memory. Null, with the work
 * failed, if there is none. */
static struct chunk *first_chunk(struct work *w)
{
	struct err e = ERR_INIT;
	struct chunk *c = chunk_new(&w->files[0].to_write->pack);

	if (!c) {
		err_set(&e, 0, "cannot save memory: no memory for a buffer");
		fail_work(w, &e);
	}
	return c;
}

static uint64_t count_chunks(const struct blocks_to_write *to_write)
{
	uint64_t changed = 0, clean = 0;

	for (size_t i = 0; i < to_write->run_count; i++)
		*(to_write->runs[i].clean ? &clean : &changed) += to_write->runs[i].size;
	return (changed + chunk_size(to_write) - 1) / chunk_size(to_write) +
	       (clean + CHUNK_SIZE - 1) / CHUNK_SIZE;
}

/* Threads to use, the calling one included. */
static unsigned count_threads(const struct work *w)
{
	const struct blocks_to_write *first = w->files[0].to_write;
	unsigned most = first->pack.method ? MAX_PACKERS : MAX_THREADS, threads;
	uint64_t chunks = 0, files = 0;

	for (size_t i = 0; i < w->count; i++) {
		chunks += count_chunks(w->files[i].to_write);
		files += image_writer_files(w->files[i].to_write->writer);
	}
	if (files > most)
		most = files < IMAGE_FILES ? files : IMAGE_FILES;
	threads = threads_wanted(first->threads, most);
	if (first->half && !first->threads)
		threads = (threads + 1) / 2;
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
	while (n < count && !thread_start(&threads[n], work_along, w))
		n++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return n;
}

static void run_pass(struct work *w, unsigned count)
{
	cleanup_free pthread_t *threads = xcalloc(count, sizeof(*threads));
	struct chunk *c = first_chunk(w);
	unsigned started;

	if (!c)
		return;
	started = start_workers(w, threads, count - 1);
	write_chunks(w, c);
	chunk_free(c);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

static int by_place(const void *a, const void *b)
{
	const struct left *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

/* Tell the sources what will be read. */
static void expect_blocks(const struct block_run *run, const struct left *left)
{
	uint32_t end;

	for (uint32_t first = 0; first < left->blocks; first = end) {
		end = first + 1;
		if (!chunk_has(&left->wanted, first))
			continue;
		while (end < left->blocks && chunk_has(&left->wanted, end))
			end++;
		run->expect(run->context, left->address + (uint64_t)first * IMAGE_BLOCK,
			(uint64_t)(end - first) * IMAGE_BLOCK);
	}
}

static void begin_cursors(struct file *f)
{
	f->changed = (struct cursor){0};
	f->clean = (struct cursor){.clean = true};
}

/* All that can be told without reading. */
static void settle_by_hashes(struct work *w, unsigned count)
{
	size_t lefts;

	w->settling = true;
	run_pass(w, count);
	w->settling = false;
	w->next_file = 0;
	for (size_t i = 0; i < w->count; i++)
		begin_cursors(&w->files[i]);
	lefts = buf_count(&w->left, struct left);
	if (lefts)
		qsort(w->left.data, lefts, sizeof(struct left), by_place);
	for (size_t i = 0; i < lefts; i++) {
		const struct left *left = buf_at(&w->left, struct left, i);

		expect_blocks(&w->files[left->file].to_write->runs[left->run], left);
	}
}

static bool knows_hashes(const struct blocks_to_write *to_write)
{
	for (size_t i = 0; i < to_write->run_count; i++)
		if (to_write->runs[i].hash)
			return true;
	return false;
}

/* Before any worker sees it. */
static void begin_file(struct file *f, const struct blocks_to_write *to_write)
{
	f->to_write = to_write;
	begin_cursors(f);
	if (to_write->parent)
		image_writer_parent(
			to_write->writer, to_write->parent, to_write->parent_source);
}

int blocks_write_files(const struct blocks_to_write *files, size_t count, struct err *e)
{
	struct work w = {.count = count,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.more = PTHREAD_COND_INITIALIZER,
		.e = e};
	bool hashes = false;
	unsigned threads;

	if (!count)
		return 0;
	w.files = xcalloc(count, sizeof(*w.files));
	for (size_t i = 0; i < count; i++) {
		begin_file(&w.files[i], &files[i]);
		hashes |= knows_hashes(&files[i]);
	}
	threads = count_threads(&w);
	if (threads && hashes)
		settle_by_hashes(&w, threads);
	if (threads && !w.failed)
		run_pass(&w, threads);
	buf_free(&w.left);
	free(w.files);
	return w.failed ? -1 : 0;
}

int blocks_write(const struct blocks_to_write *to_write, struct err *e)
{
	return blocks_write_files(to_write, 1, e);
}

/* ---- files that come one after the other ---- */

struct blocks_stream {
	struct work w;
	struct err e;
	struct chunk *own; /* of the thread that adds files */
	unsigned started;
	pthread_t threads[MAX_PACKERS];
};

struct blocks_stream *blocks_stream_begin(size_t room)
{
	struct blocks_stream *s = xcalloc(1, sizeof(*s));

	s->w = (struct work){.lock = PTHREAD_MUTEX_INITIALIZER,
		.more = PTHREAD_COND_INITIALIZER,
		.is_open = true,
		.files = xcalloc(room, sizeof(*s->w.files)),
		.e = &s->e};
	return s;
}

/* The thread that adds files is one of those that are wanted, and writes when it has added all. */
static void start_stream(struct blocks_stream *s, const struct blocks_to_write *first)
{
	unsigned most = first->pack.method ? MAX_PACKERS : MAX_THREADS;
	unsigned wanted = threads_wanted(first->threads, most);

	if (wanted > MAX_PACKERS)
		wanted = MAX_PACKERS;
	s->own = first_chunk(&s->w);
	if (s->own)
		s->started = start_workers(&s->w, s->threads, wanted - 1);
}

void blocks_stream_add(struct blocks_stream *s, const struct blocks_to_write *file)
{
	bool is_first = !s->w.count;

	BUG_ON(knows_hashes(file));
	pthread_mutex_lock(&s->w.lock);
	begin_file(&s->w.files[s->w.count++], file);
	pthread_cond_signal(&s->w.more);
	pthread_mutex_unlock(&s->w.lock);
	if (is_first)
		start_stream(s, file);
}

int blocks_stream_end(struct blocks_stream *s, bool give_up, struct err *e)
{
	int failed;

	pthread_mutex_lock(&s->w.lock);
	s->w.is_open = false;
	s->w.failed |= give_up;
	pthread_cond_broadcast(&s->w.more);
	pthread_mutex_unlock(&s->w.lock);
	if (s->own && !give_up)
		write_chunks(&s->w, s->own);
	for (unsigned i = 0; i < s->started; i++)
		pthread_join(s->threads[i], NULL);
	if (s->own)
		chunk_free(s->own);
	failed = s->w.failed ? -1 : 0;
	if (failed && !give_up && e)
		*e = s->e;
	free(s->w.files);
	free(s);
	return failed;
}
