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

#include "supervisor/split/lower_half.h"

/* A slot is copied in milliseconds. */
#define COPY_NS 60000000000ull

/* Slots begin at multiples of their size, which chunks of ckpt/blocks.c divide. */
#define SLOT_UNIT (1ul << 20)
#define MAX_SIZE  (1ul << 32)

void staging_init(struct staging *staging)
{
	pthread_mutex_init(&staging->lock, NULL);
	pthread_cond_init(&staging->changed, NULL);
}

void staging_free(struct staging *staging)
{
	if (staging->data)
		munmap(staging->data, staging->size);
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

/* ---- reading; all under the lock but copies and orders ---- */

static uint64_t slot_size(const struct staging *staging)
{
	return align_down(staging->size / STAGING_SLOTS, SLOT_UNIT);
}

static char *slot_data(const struct staging *staging, const struct staging_slot *slot)
{
	return staging->data + (slot - staging->slots) * slot_size(staging);
}

/* The slot that has @address, or will have it; NULL: none. */
static struct staging_slot *find_slot(struct staging *staging, uint64_t address)
{
	for (size_t i = 0; i < STAGING_SLOTS; i++) {
		struct staging_slot *s = &staging->slots[i];

		if (address >= s->address && address - s->address < s->filled)
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

/* Have @slot filled from where @address is in the range. */
static int fetch_slot(struct process *p, const struct device_range *range,
	struct staging_slot *slot, uint64_t address, struct err *e)
{
	struct staging *staging = &p->lower->staging;
	uint64_t step = slot_size(staging), start = address - address % step;
	struct lower_transfer t = {.device = range->device};
	int r;

	t.address = start > range->start ? start : range->start;
	t.size = (range->end - start < step ? range->end : start + step) - t.address;
	t.offset = slot_data(staging, slot) - staging->data;
	*slot = (struct staging_slot){.address = t.address,
		.filled = t.size,
		.used = ++staging->clock,
		.coming = true};
	if (t.address + t.size > staging->furthest)
		staging->furthest = t.address + t.size;
	staging->ordering = true;
	pthread_mutex_unlock(&staging->lock);
	r = lower_order(p, LOWER_SAVE, &t, 1, clock_ns(CLOCK_MONOTONIC) + COPY_NS, e);
	pthread_mutex_lock(&staging->lock);
	staging->ordering = slot->coming = false;
	if (r)
		slot->filled = 0;
	pthread_cond_broadcast(&staging->changed);
	return r;
}

/* What will be asked for next. That it fails is told to the reader. */
static void fetch_ahead(
	struct process *p, const struct device_range *range, const struct staging_slot *slot)
{
	struct staging *staging = &p->lower->staging;
	uint64_t next = slot->address + slot->filled;
	struct staging_slot *free_slot = oldest_slot(staging);

	/* Not for one that is late: the others are ahead of it. */
	if (next < range->end && next >= staging->furthest && free_slot && !staging->ordering)
		(void)fetch_slot(p, range, free_slot, next, NULL);
}

/* The slot with @address, for the caller to read; NULL on failure. */
static struct staging_slot *get_slot(
	struct process *p, const struct device_range *range, uint64_t address, struct err *e)
{
	struct staging *staging = &p->lower->staging;

	for (;;) {
		struct staging_slot *slot = find_slot(staging, address), *old;

		if (slot && !slot->coming) {
			slot->readers++;
			slot->used = ++staging->clock;
			return slot;
		}
		old = slot || staging->ordering ? NULL : oldest_slot(staging);
		if (!old)
			pthread_cond_wait(&staging->changed, &staging->lock);
		else if (fetch_slot(p, range, old, address, e))
			return NULL;
	}
}

static int read_piece(struct process *p, const struct device_range *range, uint64_t address,
	void *data, size_t *size, struct err *e)
{
	struct staging *staging = &p->lower->staging;
	struct staging_slot *slot;
	uint64_t at;

	pthread_mutex_lock(&staging->lock);
	slot = get_slot(p, range, address, e);
	if (slot) {
		fetch_ahead(p, range, slot);
		at = address - slot->address;
		if (*size > slot->filled - at)
			*size = slot->filled - at;
		pthread_mutex_unlock(&staging->lock);
		memcpy(data, slot_data(staging, slot) + at, *size);
		pthread_mutex_lock(&staging->lock);
		slot->readers--;
		pthread_cond_broadcast(&staging->changed);
	}
	pthread_mutex_unlock(&staging->lock);
	return slot ? 0 : -1;
}

int staging_read(struct process *p, const struct device_range *range, uint64_t address,
	void *data, size_t size, struct err *e)
{
	while (size) {
		size_t n = size;

		if (read_piece(p, range, address, data, &n, e))
			return -1;
		address += n;
		data = (char *)data + n;
		size -= n;
	}
	return 0;
}
