/*
 * Contexts of asynchronous I/O (io_setup(2)). One is memory that the kernel has mapped, and its
 * address is what programs know it by: struct aio_ring in the kernel's fs/aio.c. What has been
 * submitted and has not ended yet is told by nothing: it is waited for, before descriptors are
 * looked at, as a write may lengthen its file. Requests that wait for a file may never end:
 * aio_polls.c.
 */
#include "supervisor/memory/aio_dump.h"

#include <dirent.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "supervisor/memory/aio_ring_position.h"

/* Requests of a disk end within this time, if they end; and it is tried several times. */
#define PATIENCE_NS 1000000000ull
/* From a disk's end of a request to the event. */
#define DELAY_NS 10000000ull

/* The disks that the files of @p are on (dev_t): none at all where some cannot be told, as they
 * are on a network, or on several disks. */
static void find_disks(const struct process *p, struct buf *disks)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd", p->task);
	DIR *dir = opendir(path);
	struct dirent *entry;
	struct stat st;
	dev_t disk;

	while (dir && (entry = readdir(dir))) {
		if (fstatat(dirfd(dir), entry->d_name, &st, 0) ||
			!(S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
			continue;
		disk = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
		buf_push(disks, dev_t, &disk);
		if (!major(disk)) {
			disks->len = 0;
			break;
		}
	}
	if (dir)
		closedir(dir);
}

static bool is_among(const struct buf *disks, dev_t disk)
{
	for (size_t i = 0; i < buf_count(disks, dev_t); i++)
		if (*buf_at(disks, dev_t, i) == disk)
			return true;
	return !disks->len;
}

/* Whether any of @disks, or of all, has something to do; for others, too. */
static bool disks_are_busy(const struct buf *disks)
{
	unsigned major_number, minor_number;
	cleanup_free char *text = NULL;
	unsigned long under_way;
	size_t len;

	if (read_file("/proc/diskstats", &text, &len, NULL))
		return true;
	for (const char *p = text; p && *p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (sscanf(p, "%u %u %*s %*u %*u %*u %*u %*u %*u %*u %*u %lu", &major_number,
			    &minor_number, &under_way) == 3 &&
			under_way && is_among(disks, makedev(major_number, minor_number)))
			return true;
	}
	return false;
}

/* Since when nothing has ended, and whether disks have been seen at rest meanwhile. */
struct calm {
	struct image_aio_ring ring;
	uint64_t since, rest;
	struct buf disks; /* dev_t; empty: all */
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
	if (!c->rest && !disks_are_busy(&c->disks))
		c->rest = now;
	return 0;
}

static int wait_for_rest(const struct context *x, struct calm *c, struct err *e)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), now = begin;

	for (; now - begin < PATIENCE_NS; now = clock_ns(CLOCK_MONOTONIC)) {
		if (look_at_context(x, c, e))
			return -1;
		if (c->rest && now > c->rest + DELAY_NS && now > c->since + DELAY_NS)
			return 0;
		sleep_ns(DELAY_NS / 10);
	}
	return err_with(e, ERR_TRY_AGAIN,
		"requests of asynchronous I/O (io_submit) of process %d (%s) may be under way: "
		"the disks of its files are busy, and the kernel does not show with whose "
		"requests; try again when they have less to do",
		x->process->pid, x->process->comm);
}

static int settle_context(const struct context *x, struct err *e)
{
	struct calm c = {0};
	int failed;

	find_disks(x->process, &c.disks);
	failed = wait_for_rest(x, &c, e);
	buf_free(&c.disks);
	return failed;
}

/* Quicker than procfs_maps(), which keeps all lines. A context that has been cut
 * is refused when memory is listed. */
int dump_settle_aio(const struct process *p, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", p->task), *text = NULL;
	struct context x = {.process = p};
	uint64_t offset;
	size_t len;
	int name;

	if (!p->may_have_aio)
		return 0;
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
