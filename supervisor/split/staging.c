/*
 * staging.c - slots of the buffer, and the pieces that are fetched ahead.
 */
#include "supervisor/split/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ckpt/image.h"
#include "supervisor/split/lower_half.h"

/* A slot is copied in milliseconds. */
#define COPY_NS 60000000000ull

#define SLOT_UNIT (1ul << 20)
#define MAX_SIZE  (1ul << 32)

/* What one order fetches. */
struct staging_piece {
	size_t first; /* transfer */
	unsigned count;
	uint64_t used; /* bytes of the buffer */
};

void staging_init(struct staging *staging)
{
	pthread_mutex_init(&staging->lock, NULL);
	pthread_cond_init(&staging->changed, NULL);
	staging->hashes.request = LOWER_HASH;
	staging->copied_hashes.request = LOWER_SAVE;
	staging->wanted.request = staging->others.request = LOWER_SAVE;
}

static void free_stream(struct staging_stream *stream)
{
	buf_free(&stream->transfers);
	buf_free(&stream->pieces);
}

void staging_free(struct staging *staging)
{
	if (staging->data)
		munmap(staging->data, staging->size);
	free_stream(&staging->hashes);
	free_stream(&staging->copied_hashes);
	free_stream(&staging->wanted);
	free_stream(&staging->others);
	pthread_cond_destroy(&staging->changed);
	pthread_mutex_destroy(&staging->lock);
}

/* ---- mapping it ---- */

/* It must stay as large as it is: to shrink a file kills the processes that have it mapped. */
static int check_file(struct process *p, int fd, uint64_t size, struct err *e)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) ||
		(uint64_t)st.st_size != size || size > MAX_SIZE ||
		size < STAGING_SLOTS * SLOT_UNIT)
		return err_set(e, 0,
			"the staging buffer of process %d is not what its lower half has made",
			p->pid);
	return 0;
}

static int read_table(struct process *p, size_t field, void *data, size_t size, struct err *e)
{
	if (!lower_peek(p->pid, LOWER_SHARED + field, data, size))
		return 0;
	return err_set(e, errno, "cannot read memory of process %d", p->pid);
}

static int borrow_buffer(struct process *p, int number, struct err *e)
{
	cleanup_fd int pidfd = syscall(SYS_pidfd_open, p->pid, 0);
	int fd = pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, number, 0);

	return fd >= 0 ? fd
		       : err_set(e, errno, "cannot reach the staging buffer of process %d",
				 p->pid);
}

int staging_map(struct process *p, struct err *e)
{
	struct staging *staging = &p->lower->staging;
	cleanup_fd int fd = -1;
	uint64_t size;
	void *data;
	int number;

	if (staging->data)
		return 0;
	if (lower_order(p, LOWER_SAVE, NULL, 0, clock_ns(CLOCK_MONOTONIC) + COPY_NS, e) ||
		read_table(p, offsetof(struct lower_table, staging_fd), &number, sizeof(number),
			e) ||
		read_table(
			p, offsetof(struct lower_table, staging_size), &size, sizeof(size), e))
		return -1;
	fd = borrow_buffer(p, number, e);
	if (fd < 0 || check_file(p, fd, size, e))
		return -1;
	data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return err_set(e, errno, "cannot map the staging buffer of process %d", p->pid);
	staging->data = data;
	staging->size = size;
	return 0;
}

static uint64_t slot_size(const struct staging *staging)
{
	return align_down(staging->size / STAGING_SLOTS, SLOT_UNIT);
}

static char *slot_data(const struct staging *staging, const struct staging_slot *slot)
{
	return staging->data + (slot - staging->slots) * slot_size(staging);
}

/* ---- what can be read ---- */

/* How much of the buffer @size bytes of memory take, and the other way round. */
static uint64_t size_in_buffer(const struct staging_stream *stream, uint64_t size)
{
	return stream->request == LOWER_HASH ? size / IMAGE_BLOCK * IMAGE_HASH_SIZE : size;
}

static uint64_t size_of_memory(const struct staging_stream *stream, uint64_t in_buffer)
{
	return stream->request == LOWER_HASH ? in_buffer / IMAGE_HASH_SIZE * IMAGE_BLOCK
					     : in_buffer;
}

static struct lower_transfer *last_transfer(const struct staging_stream *stream)
{
	size_t count = buf_count(&stream->transfers, struct lower_transfer);

	return count ? buf_at(&stream->transfers, struct lower_transfer, count - 1) : NULL;
}

static bool continues_transfer(const struct lower_transfer *t, const struct device_range *range)
{
	return t && t->address + t->size == range->start && t->device == range->device;
}

/* The piece that the beginning of @range goes to, which has room. */
static struct staging_piece *piece_for(const struct staging *staging,
	struct staging_stream *stream, const struct device_range *range)
{
	size_t count = buf_count(&stream->pieces, struct staging_piece);
	struct staging_piece *last =
		count ? buf_at(&stream->pieces, struct staging_piece, count - 1) : NULL;
	struct staging_piece next = {
		.first = buf_count(&stream->transfers, struct lower_transfer)};

	if (last && last->used < slot_size(staging) &&
		(last->count < LOWER_TRANSFERS ||
			continues_transfer(last_transfer(stream), range)))
		return last;
	buf_push(&stream->pieces, struct staging_piece, &next);
	return buf_at(&stream->pieces, struct staging_piece, count);
}

void staging_add(struct staging *staging, struct staging_stream *stream,
	const struct device_range *range)
{
	struct device_range left = *range;

	while (left.start < left.end) {
		struct staging_piece *piece = piece_for(staging, stream, &left);
		uint64_t size = size_of_memory(stream, slot_size(staging) - piece->used);

		if (size > left.end - left.start)
			size = left.end - left.start;
		if (piece->count && continues_transfer(last_transfer(stream), &left)) {
			last_transfer(stream)->size += size;
		} else {
			struct lower_transfer t = {.address = left.start,
				.size = size,
				.offset = piece->used,
				.device = left.device};

			buf_push(&stream->transfers, struct lower_transfer, &t);
			piece->count++;
		}
		piece->used += size_in_buffer(stream, size);
		left.start += size;
	}
}

/* The transfer that has @address. */
static const struct lower_transfer *find_transfer(
	const struct staging_stream *stream, uint64_t address)
{
	size_t low = 0, high = buf_count(&stream->transfers, struct lower_transfer);
	const struct lower_transfer *t = stream->transfers.data;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t[middle].address + t[middle].size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	BUG_ON(low == buf_count(&stream->transfers, struct lower_transfer) ||
		t[low].address > address);
	return &t[low];
}

static size_t find_piece(const struct staging_stream *stream, const struct lower_transfer *t)
{
	size_t low = 0, high = buf_count(&stream->pieces, struct staging_piece);
	size_t number = t - (const struct lower_transfer *)stream->transfers.data;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (buf_at(&stream->pieces, struct staging_piece, middle)->first <= number)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* ---- reading; all under the lock but copies and orders ---- */

/* The slot that has a piece, or will have it; NULL: none. */
static struct staging_slot *find_slot(
	struct staging *staging, const struct staging_stream *stream, size_t piece)
{
	for (size_t i = 0; i < STAGING_SLOTS; i++) {
		struct staging_slot *s = &staging->slots[i];

		if (s->stream == stream && s->piece == piece)
			return s;
	}
	return NULL;
}

/* The least recently used piece that nobody reads; NULL: all are read. */
static struct staging_slot *oldest_slot(struct staging *staging)
{
	struct staging_slot *found = NULL;

	for (size_t i = 0; i < STAGING_SLOTS; i++) {
		struct staging_slot *s = &staging->slots[i];

		if (!s->readers && !s->coming && (!found || s->used < found->used))
			found = s;
	}
	return found;
}

static int order_piece(struct process *p, const struct staging_stream *stream,
	const struct staging_piece *piece, const struct staging_slot *slot, struct err *e)
{
	const struct staging *staging = &p->lower->staging;
	struct lower_transfer t[LOWER_TRANSFERS];

	memcpy(t, buf_at(&stream->transfers, struct lower_transfer, piece->first),
		piece->count * sizeof(*t));
	for (unsigned i = 0; i < piece->count; i++)
		t[i].offset += slot_data(staging, slot) - staging->data;
	return lower_order(
		p, stream->request, t, piece->count, clock_ns(CLOCK_MONOTONIC) + COPY_NS, e);
}

/* Have @slot filled with piece @number. */
static int fetch_slot(struct process *p, struct staging_stream *stream,
	struct staging_slot *slot, size_t number, struct err *e)
{
	struct staging *staging = &p->lower->staging;
	int r;

	*slot = (struct staging_slot){
		.stream = stream, .piece = number, .used = ++staging->clock, .coming = true};
	if (number >= stream->furthest)
		stream->furthest = number + 1;
	staging->ordering = true;
	pthread_mutex_unlock(&staging->lock);
	r = order_piece(
		p, stream, buf_at(&stream->pieces, struct staging_piece, number), slot, e);
	pthread_mutex_lock(&staging->lock);
	staging->ordering = slot->coming = false;
	if (r)
		slot->stream = NULL;
	pthread_cond_broadcast(&staging->changed);
	return r;
}

/* What will be asked for next. That it fails is told to the reader. */
static void fetch_ahead(struct process *p, struct staging_stream *stream, size_t next)
{
	struct staging *staging = &p->lower->staging;
	struct staging_slot *free_slot = oldest_slot(staging);

	/* Not for a late stream: the others are ahead of it. */
	if (next < buf_count(&stream->pieces, struct staging_piece) &&
		next >= stream->furthest && free_slot && !staging->ordering)
		(void)fetch_slot(p, stream, free_slot, next, NULL);
}

/* The slot with piece @number, for the caller to read; NULL on failure. */
static struct staging_slot *get_slot(
	struct process *p, struct staging_stream *stream, size_t number, struct err *e)
{
	struct staging *staging = &p->lower->staging;

	for (;;) {
		struct staging_slot *slot = find_slot(staging, stream, number), *old;

		if (slot && !slot->coming) {
			slot->readers++;
			slot->used = ++staging->clock;
			return slot;
		}
		old = slot || staging->ordering ? NULL : oldest_slot(staging);
		if (!old)
			pthread_cond_wait(&staging->changed, &staging->lock);
		else if (fetch_slot(p, stream, old, number, e))
			return NULL;
	}
}

static int read_piece(struct process *p, struct staging_stream *stream, size_t number,
	uint64_t offset, void *data, uint64_t size, struct err *e)
{
	struct staging *staging = &p->lower->staging;
	struct staging_slot *slot;

	pthread_mutex_lock(&staging->lock);
	slot = get_slot(p, stream, number, e);
	if (slot) {
		fetch_ahead(p, stream, number + 1);
		pthread_mutex_unlock(&staging->lock);
		memcpy(data, slot_data(staging, slot) + offset, size);
		pthread_mutex_lock(&staging->lock);
		slot->readers--;
		pthread_cond_broadcast(&staging->changed);
	}
	pthread_mutex_unlock(&staging->lock);
	return slot ? 0 : -1;
}

int staging_read(struct process *p, struct staging_stream *stream, uint64_t address, void *data,
	uint64_t size, struct err *e)
{
	while (size) {
		const struct lower_transfer *t = find_transfer(stream, address);
		uint64_t skip = address - t->address;
		uint64_t n = t->size - skip < size ? t->size - skip : size;
		uint64_t bytes = size_in_buffer(stream, n);

		if (read_piece(p, stream, find_piece(stream, t),
			    t->offset + size_in_buffer(stream, skip), data, bytes, e))
			return -1;
		address += n;
		data = (char *)data + bytes;
		size -= n;
	}
	return 0;
}
