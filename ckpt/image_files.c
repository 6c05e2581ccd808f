/*
 * image_files.c - the files that the blocks of an image go to. Threads that write to one file take
 * turns, as the kernel locks its inode: on a tmpfs 16 of them are slower than one. So each has a
 * file that no other thread writes to just now, where memory is large enough to be worth it.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ckpt/hash.h"
#include "ckpt/image_write_private.h"
#include "lib/test_hooks.h"

/* Memory for which there is one file more, and how much each must have before the next is made: what
 * has hardly changed since the checkpoint before stays in one. */
#define FILE_MEMORY (64ull << 20)
#define FILE_FIRST  (4ull << 20)

void image_writer_expect(struct image_writer *w, int dirfd, const char *name, uint64_t bytes)
{
	const char *test = test_image_files();
	uint64_t files = test ? strtoul(test, NULL, 10) : 1 + bytes / FILE_MEMORY;

	BUG_ON(!w->notes[IMAGE_NOTE_CHAIN].len);
	w->dirfd = dirfd;
	free(w->name);
	w->name = xstrdup(name);
	w->in_turn = test;
	if (files > IMAGE_FILES)
		files = IMAGE_FILES;
	if (files > w->files_most)
		w->files_most = files;
}

unsigned image_writer_files(const struct image_writer *w)
{
	return w->files_most;
}

size_t image_writer_sources(const struct image_writer *w)
{
	size_t chain = buf_count(&w->notes[IMAGE_NOTE_CHAIN], struct image_chain);

	return (chain ? chain : 1) - w->file_count + w->files_most;
}

void image_writer_chain(
	struct image_writer *w, const struct image_chain *link, const char *process)
{
	struct buf *names = &w->notes[IMAGE_NOTE_CHAIN_NAMES];
	size_t index = buf_count(&w->notes[IMAGE_NOTE_CHAIN], struct image_chain);
	uint32_t name;

	image_writer_note(w, IMAGE_NOTE_CHAIN, link, sizeof(*link));
	if (!process)
		return;
	name = image_writer_string(w, process);
	buf_grow(names, index * sizeof(name) - names->len);
	buf_push(names, uint32_t, &name);
}

static const char *text_at(const struct image_writer *w, uint32_t offset)
{
	return (const char *)w->strings.text.data + offset;
}

/* The name of the process's file that entry @index of the chain is about. */
static const char *name_in_chain(const struct image_writer *w, uint32_t index)
{
	const struct buf *names = &w->notes[IMAGE_NOTE_CHAIN_NAMES];
	uint32_t name = 0;

	if (index < buf_count(names, uint32_t))
		name = *buf_at(names, uint32_t, index);
	return name ? text_at(w, name) : w->name;
}

uint32_t image_writer_peer(
	struct image_writer *w, const struct image_writer *other, uint32_t source)
{
	struct image_chain link =
		*buf_at(&other->notes[IMAGE_NOTE_CHAIN], struct image_chain, source);
	uint32_t index;

	pthread_mutex_lock(&w->lock);
	index = buf_count(&w->notes[IMAGE_NOTE_CHAIN], struct image_chain);
	link.name = image_writer_string(w, text_at(other, link.name));
	image_writer_chain(w, &link, name_in_chain(other, source));
	pthread_mutex_unlock(&w->lock);
	return index;
}

size_t image_writer_peers(const struct image_writer *w)
{
	const struct buf *names = &w->notes[IMAGE_NOTE_CHAIN_NAMES];
	size_t count = 0;

	for (size_t i = 0; i < buf_count(names, uint32_t); i++)
		count += *buf_at(names, uint32_t, i) != 0;
	return count;
}

/* One more, under the lock. NULL: it cannot be made, which only makes writing slower. */
static struct image_blocks_file *add_file(struct image_writer *w)
{
	struct image_chain link = *buf_at(&w->notes[IMAGE_NOTE_CHAIN], struct image_chain, 0);
	cleanup_free char *name = xasprintf(IMAGE_BLOCKS_FILE, w->name, w->file_count);
	int fd = openat(w->dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct image_blocks_file *f = &w->files[w->file_count];

	if (fd < 0) {
		w->files_most = w->file_count;
		return NULL;
	}
	link.file = w->file_count;
	*f = (struct image_blocks_file){
		.fd = fd,
		.what = xasprintf(IMAGE_BLOCKS_FILE, w->files[0].what, w->file_count),
		.end = IMAGE_HEAD_SIZE,
		.source = buf_count(&w->notes[IMAGE_NOTE_CHAIN], struct image_chain),
	};
	image_writer_note(w, IMAGE_NOTE_CHAIN, &link, sizeof(link));
	w->file_count++;
	return f;
}

static bool goes_before(
	const struct image_writer *w, unsigned i, const struct image_blocks_file *best)
{
	const struct image_blocks_file *f = &w->files[i];

	return w->in_turn ? f->end < best->end : f->writers < best->writers;
}

static bool wants_another(const struct image_writer *w, const struct image_blocks_file *best)
{
	if (w->file_count >= w->files_most)
		return false;
	return w->in_turn ||
	       (best->writers && image_writer_stored(w) >= w->file_count * FILE_FIRST);
}

/* The first of the files that the fewest threads write to; a new one if all have some. */
static struct image_blocks_file *choose_file(struct image_writer *w)
{
	struct image_blocks_file *best = &w->files[0], *added;

	for (unsigned i = 1; i < w->file_count; i++)
		if (goes_before(w, i, best))
			best = &w->files[i];
	added = wants_another(w, best) ? add_file(w) : NULL;
	return added ? added : best;
}

/* Room for @size bytes in a file that is this thread's until put_file(). */
static struct image_blocks_file *take_file(
	struct image_writer *w, size_t size, uint64_t *offset)
{
	struct image_blocks_file *f;

	pthread_mutex_lock(&w->lock);
	f = choose_file(w);
	f->writers++;
	*offset = f->end;
	f->end += size;
	pthread_mutex_unlock(&w->lock);
	__atomic_fetch_add(&w->stored, size, __ATOMIC_RELAXED);
	return f;
}

static void put_file(struct image_writer *w, struct image_blocks_file *f)
{
	pthread_mutex_lock(&w->lock);
	f->writers--;
	pthread_mutex_unlock(&w->lock);
}

#define BEHIND (1u << 20)

static int write_blocks(struct image_blocks_file *f, uint64_t offset, struct iovec *pieces,
	int count, size_t size, struct err *e)
{
	uint64_t from = align_down(offset, BEHIND), to = align_down(offset + size, BEHIND);

	if (pwritev_all(f->fd, pieces, count, offset, f->what, e))
		return -1;
	/* Start the way to disk now: with the fsync at the end that made 1.9 GB/s of 1.3 on
	 * ext4 with two threads. O_DIRECT gave 0.5 to 3.6 depending on the day and device. Not
	 * for each block of many small files, which made 5000 requests to the disk of one. Only
	 * a hint: what goes wrong, the fsync reports. */
	if (to > from)
		(void)sync_file_range(f->fd, from, to - from, SYNC_FILE_RANGE_WRITE);
	return 0;
}

int image_writer_blocks(struct image_writer *w, struct iovec *pieces, int count, size_t size,
	uint32_t *source, uint64_t *offset, struct err *e)
{
	struct image_blocks_file *f = take_file(w, size, offset);
	int failed = write_blocks(f, *offset, pieces, count, size, e);

	*source = f->source;
	put_file(w, f);
	return failed;
}

/* Another process may have written to the file since it was read: what is shared now is read
 * and hashed once more. */
static int reread_blocks(const struct image_blocks_file *f, uint64_t offset, uint8_t *data,
	size_t size, uint8_t (*hashes)[IMAGE_HASH_SIZE], struct err *e)
{
	if (pread_all(f->fd, data, size, offset, f->what, e))
		return -1;
	for (size_t i = 0; i < size / IMAGE_BLOCK; i++)
		hash128(data + i * IMAGE_BLOCK, IMAGE_BLOCK, hashes[i]);
	return 0;
}

int image_writer_shared_blocks(struct image_writer *w, int from, uint64_t from_offset,
	uint8_t *data, size_t size, uint8_t (*hashes)[IMAGE_HASH_SIZE], uint32_t *source,
	uint64_t *offset, struct err *e)
{
	struct image_blocks_file *f = take_file(w, size, offset);
	struct iovec piece = {data, size};
	struct file_clone_range range = {
		.src_fd = from, .src_offset = from_offset, .src_length = size};
	int failed;

	range.dest_offset = *offset;
	failed = ioctl(f->fd, FICLONERANGE, &range)
			 ? write_blocks(f, *offset, &piece, 1, size, e)
			 : reread_blocks(f, *offset, data, size, hashes, e);
	*source = f->source;
	put_file(w, f);
	return failed;
}
