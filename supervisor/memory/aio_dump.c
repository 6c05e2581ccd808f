/*
 * Contexts of asynchronous I/O (io_setup(2)). One is memory that the kernel has mapped, and its
 * address is what programs know it by: struct aio_ring in the kernel's fs/aio.c. What has been
 * submitted and has not ended yet is told by nothing: it is waited for, before descriptors are
 * looked at, as a write may lengthen its file. Requests that wait for a file may never end:
 * aio_polls.c.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "supervisor/memory/aio_ring_position.h"
#include "supervisor/state/dump.h"

/* Requests of a disk end within this time, if they end. */
#define PATIENCE_NS 3000000000ull
#define BUSY_NS     1000000000ull
/* From a disk's end of a request to the event. */
#define DELAY_NS 10000000ull

/* In /proc/PID/maps. */
#define AIO_NAME "/[aio]"

/* Whether any disk has something to do; those of others, too. */
static bool disks_are_busy(void)
{
	cleanup_free char *text = NULL;
	unsigned long under_way;
	size_t len;

	if (read_file("/proc/diskstats", &text, &len, NULL))
		return true;
	for (const char *p = text; p && *p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (sscanf(p, "%*u %*u %*s %*u %*u %*u %*u %*u %*u %*u %*u %lu", &under_way) ==
				1 &&
			under_way)
			return true;
	}
	return false;
}

/* Since when nothing has ended, and whether disks have been seen at rest meanwhile. */
struct calm {
	struct image_aio_ring ring;
	uint64_t since, rest;
};

/* A context of a process, in its memory from @start to @end. */
struct context {
	const struct process *process;
	uint64_t start, end;
};

static int look_at_context(const struct context *x, struct calm *c, struct err *e)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint32_t tail = c->ring.tail;

	if (aio_read_ring(x->process->mem_fd, x->start, x->end - x->start, &c->ring, e))
		return err_prefix(e, "process %d (%s)", x->process->pid, x->process->comm);
	if (!c->since || tail != c->ring.tail)
		c->since = now;
	if (!c->rest && !disks_are_busy())
		c->rest = now;
	return 0;
}

static int settle_context(const struct context *x, struct err *e)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), now = begin;
	const struct timespec pause = {.tv_nsec = DELAY_NS / 10};
	struct calm c = {0};

	for (; now - begin < PATIENCE_NS; now = clock_ns(CLOCK_MONOTONIC)) {
		if (look_at_context(x, &c, e))
			return -1;
		if (c.rest && now > c.rest + DELAY_NS && now > c.since + DELAY_NS)
			return 0;
		/* Others keep them busy. */
		if (now > c.since + BUSY_NS)
			return 0;
		/* Woken early: all the same. */
		(void)nanosleep(&pause, NULL);
	}
	return err_set(e, 0,
		"requests of asynchronous I/O (io_submit) of process %d (%s) are under way "
		"that do not end in time",
		x->process->pid, x->process->comm);
}

/* /proc/PID/maps is quicker than procfs_vmas(), which reads smaps. A context that has been cut
 * is refused when memory is listed. */
int dump_settle_aio(const struct process *p, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", p->task), *text = NULL;
	struct context x = {.process = p};
	uint64_t offset;
	size_t len;
	int name;

	if (read_file(path, &text, &len, e))
		return -1;
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		name = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &x.start,
			    &x.end, &offset, &name) == 3 &&
			name && !strncmp(line + name, AIO_NAME, strlen(AIO_NAME)) && !offset &&
			settle_context(&x, e))
			return -1;
	}
	return 0;
}

bool dump_is_aio(const struct vma *v)
{
	return v->shared && !strncmp(v->name, AIO_NAME, strlen(AIO_NAME));
}

int dump_aio(const struct dump *d, const struct vma *v, struct image_region *r, struct err *e)
{
	if (v->offset)
		return err_set(e, 0,
			"the AIO context before %#" PRIx64 " of process %d (%s) has been cut, "
			"which is not supported",
			v->start, d->process->pid, d->process->comm);
	r->kind = IMAGE_REGION_AIO;
	return 0;
}
