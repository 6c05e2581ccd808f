/*
 * An io_uring at a checkpoint: its memory, its counters, and what is registered with it.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <string.h>
#include <dirent.h>

#include "lib/kernel_release.h"
#include "lib/procfs.h"
#include "lib/uring_abi.h"
#include "supervisor/fd/fd.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/uring/uring_refuse.h"
#include "supervisor/uring/uring_settle.h"
#include "supervisor/uring/uring.h"
#include "supervisor/uring/uring_inspect.h"

/* ---- descriptors of the process, by what they lead to ---- */

struct matches {
	const struct uring_look *u;
	const char *link;
	int fd; /* the first one; -1: none */
	bool several;
};

static int match_descriptor(struct matches *m, int fd, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd/%d", m->u->s->task, fd);
	cleanup_free char *link = read_link(path, NULL);
	int r = 0;

	if (!link || strcmp(link, m->link))
		return 0;
	if (m->fd >= 0)
		r = syscall(SYS_kcmp, m->u->s->task, m->u->s->task, KCMP_FILE, (long)m->fd,
			(long)fd);
	else
		m->fd = fd;
	if (r < 0)
		return err_set(e, errno, "cannot compare descriptors (kcmp)");
	m->several |= r != 0;
	return 0;
}

static int find_descriptor(struct matches *m, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd", m->u->s->task);
	DIR *dir = opendir(path);
	struct dirent *entry;
	int failed = 0;

	m->fd = -1;
	if (!dir)
		return err_set(e, errno, "cannot list %s", path);
	while (!failed && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			failed = match_descriptor(m, atoi(entry->d_name), e);
	closedir(dir);
	return failed;
}

/* ---- what is registered ---- */

/* seq_file writes blanks and the like as \ooo. */
static void unescape_octal(char *s)
{
	char *to = s;
	unsigned c;

	for (; *s; s++)
		if (*s == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
			*to++ = c;
			s += 3;
		} else {
			*to++ = *s;
		}
	*to = 0;
}

static int add_file(
	struct uring_look *u, uint32_t slot, char *name, struct buf *out, struct err *e)
{
	struct matches m = {.u = u, .link = name};

	unescape_octal(name);
	if (find_descriptor(&m, e))
		return -1;
	/* What is not in a directory has a colon: "socket:[123]". */
	if (m.fd < 0 && !strpbrk(name, "/:"))
		return err_set(e, 0,
			"a file is registered with it (%s) of which this kernel shows only the "
			"name, so "
			"that its descriptor cannot be found; newer ones show its path",
			name);
	if (m.fd < 0)
		return err_set(e, 0,
			"a file is registered with it (%s) that no descriptor refers to any "
			"more",
			name);
	if (m.several)
		return err_set(e, 0,
			"a file is registered with it (%s) that is open several times: the "
			"kernel does not show which of them it is",
			name);
	buf_printf(out, "file %u %d\n", slot, m.fd);
	return 0;
}

static int add_files(struct uring_look *u, struct buf *out, struct err *e)
{
	char *name;
	int failed = 0;

	if (u->info.files)
		buf_printf(out, "files %u\n", u->info.files);
	for (uint32_t slot = 0;
		!failed && (name = uring_info_slot(&u->info, "UserFiles", &slot)); slot++) {
		failed = add_file(u, slot, name, out, e);
		free(name);
	}
	return failed;
}

/* It has to be there to be registered again. */
static int add_buffer(
	struct uring_look *u, uint32_t slot, const char *text, struct buf *out, struct err *e)
{
	uint64_t at, size;
	char byte;

	if (sscanf(text, "%" SCNx64 "/%" SCNu64, &at, &size) != 2)
		return err_set(e, 0,
			"cannot parse what the kernel shows of what is registered with it: %s",
			text);
	if (tracee_read(u->process->mem_fd, at, &byte, 1, NULL) ||
		tracee_read(u->process->mem_fd, at + size - 1, &byte, 1, NULL))
		return err_set(e, 0,
			"memory is registered with it (%#" PRIx64
			") that the process no longer has",
			at);
	buf_printf(out, "buffer %u %" PRIx64 " %" PRIx64 "\n", slot, at, size);
	return 0;
}

static int add_buffers(struct uring_look *u, struct buf *out, struct err *e)
{
	char *text;
	int failed = 0;

	if (u->info.buffers)
		buf_printf(out, "buffers %u\n", u->info.buffers);
	for (uint32_t slot = 0;
		!failed && (text = uring_info_slot(&u->info, "UserBufs", &slot)); slot++) {
		failed = add_buffer(u, slot, text, out, e);
		free(text);
	}
	return failed;
}

static int add_eventfd(struct uring_look *u, struct buf *out, struct err *e)
{
	struct matches m = {.u = u, .link = "anon_inode:[eventfd]"};

	if (!u->has_eventfd)
		return 0;
	if (find_descriptor(&m, e))
		return -1;
	if (m.fd < 0 || m.several)
		return err_set(e, 0, "an eventfd is registered with it, and %s",
			m.fd < 0 ? "no descriptor leads to one any more"
				 : "the kernel does not show which of several it is");
	buf_printf(out, "eventfd %d\n", m.fd);
	return 0;
}

static void add_overflow(const struct uring_look *u, struct buf *out)
{
	struct uring_completion c;

	for (const char *p = NULL; (p = uring_info_overflow(&u->info, p, &c));)
		buf_printf(out, "overflow %" PRIx64 " %x %x\n", c.user_data, (uint32_t)c.result,
			c.flags);
}

/* ---- all of it ---- */

/* Rings may share the thread that polls them. */
static int add_thread(struct fd_dump *d, const struct uring_look *u, struct image_ring *image,
	struct buf *out, struct err *e)
{
	cpu_set_t own, its;

	if (!(u->flags & IORING_SETUP_SQPOLL))
		return 0;
	if (uring_refuse_shared(d, u, e))
		return -1;
	for (size_t i = 0; i < buf_count(&d->rings, struct uring_seen); i++) {
		const struct uring_seen *seen = buf_at(&d->rings, struct uring_seen, i);

		if (seen->sq_thread != u->info.sq_thread)
			continue;
		buf_printf(out, "attach %d\n", seen->fd);
		return 0;
	}
	if (!sched_getaffinity(u->info.sq_thread, sizeof(its), &its) &&
		!sched_getaffinity(u->s->task, sizeof(own), &own) && CPU_COUNT(&its) == 1 &&
		CPU_COUNT(&own) > 1) {
		image->flags |= IORING_SETUP_SQ_AFF;
		while (!CPU_ISSET(image->sq_cpu, &its))
			image->sq_cpu++;
	}
	return 0;
}

static void fill_ring(const struct uring_look *u, struct image_ring *image)
{
	const struct ring *r = &u->ring;
	*image = (struct image_ring){
		.flags = u->flags,
		.sq_entries = u->info.sq_entries,
		.cq_entries = u->info.cq_entries,
		.sq_head = u->info.sq_head,
		.sq_tail = ring_read(r, r->p.sq_off.tail),
		.cq_head = ring_read(r, r->p.cq_off.head),
		.cq_tail = u->info.cq_tail,
		.sq_dropped = ring_read(r, r->p.sq_off.dropped),
		.cq_flags = ring_read(r, r->p.cq_off.flags),
		.cq_overflow = ring_read(r, r->p.cq_off.overflow),
		.tid = uring_submitter(u)->vtid,
	};
}

static void write_object(struct fd_dump *d, const struct uring_look *u,
	const struct image_ring *image, const struct buf *text, uint32_t number)
{
	struct buf *out = &fd_object_at(d, number)->bytes;
	const struct ring *r = &u->ring;

	buf_add(out, image, sizeof(*image));
	buf_add(out, r->sqes, r->sqes_size);
	buf_add(out, r->rings + r->p.cq_off.cqes, r->p.cq_entries * ring_cqe_size(r));
	if (ring_array(r))
		buf_add(out, ring_array(r), r->p.sq_entries * sizeof(uint32_t));
	buf_add(out, text->data, text->len);
}

static void remember_ring(struct fd_dump *d, const struct uring_look *u, uint32_t object)
{
	struct uring_seen seen = {
		.pid = u->s->pid,
		.task = u->s->task,
		.fd = u->s->fd,
		.object = object,
		.sq_thread = u->info.sq_thread,
		.files = u->info.files,
		.buffers = u->info.buffers,
		.sq_head = u->info.sq_head,
		.cq_tail = u->info.cq_tail,
	};

	buf_push(&d->rings, struct uring_seen, &seen);
}

static int settle_ring(struct uring_look *u, struct buf *text, struct err *e)
{
	return uring_look_again(u, e) || uring_find_issuer(u, e) || uring_find_flags(u, e) ||
			       uring_settle(u, text, e)
		       ? -1
		       : 0;
}

static int dump_ring(
	struct fd_dump *d, struct uring_look *u, struct image_description *x, struct err *e)
{
	cleanup_buf struct buf text = {0};
	struct image_ring image;

	if (settle_ring(u, &text, e) || uring_refuse_rest(u, e))
		return -1;
	if (text.len)
		image_writer_incompat(d->job, IMAGE_INCOMPAT_REQUESTS);
	fill_ring(u, &image);
	if (add_thread(d, u, &image, &text, e) || add_files(u, &text, e) ||
		add_buffers(u, &text, e) || add_eventfd(u, &text, e))
		return -1;
	add_overflow(u, &text);
	x->object = fd_object_of(d, u->s, IMAGE_OBJECT_URING);
	write_object(d, u, &image, &text, x->object);
	remember_ring(d, u, x->object);
	return 0;
}

bool fd_uring_match(const struct fd_dump *d, const struct fd_source *s)
{
	return !strcmp(s->link, URING_LINK);
}

static int look_at_ring(
	struct uring_look *u, const struct fd_dump *d, const struct fd_source *s, struct err *e)
{
	*u = (struct uring_look){
		.s = s, .process = d->tree ? tree_find(d->tree, s->pid) : NULL};
	return u->process && u->process->thread_count
		       ? 0
		       : err_set(e, 0, "an io_uring cannot be saved from here");
}

static void release_look(struct uring_look *u)
{
	ring_unmap(&u->ring);
	uring_info_release(&u->info);
}

/* Seen on 6.1: the only free place at which a restart lets the kernel map a ring was not taken,
 * when the program had ended. What is between has not been tried. */
static int check_kernel(struct err *e)
{
	if (kernel_is_at_least(6, 12))
		return 0;
	return err_set(e, 0,
		"a restart may not get it back at its address on kernels before Linux "
		"6.12, and "
		"this is %s: have the program do without io_uring",
		kernel_release());
}

int uring_dump_settle(struct fd_dump *d, const struct fd_source *s, struct err *e)
{
	cleanup_buf struct buf text = {0};
	struct uring_look u = {0};
	int failed;

	/* Before requests are waited for. */
	failed = check_kernel(e) || look_at_ring(&u, d, s, e) || settle_ring(&u, &text, e);
	release_look(&u);
	return failed ? -1 : 0;
}

int fd_uring_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	struct uring_look u = {0};
	int failed;

	failed = check_kernel(e) || look_at_ring(&u, d, s, e) || dump_ring(d, &u, x, e);
	release_look(&u);
	return failed ? -1 : 0;
}

/* The size counts all its bytes, once there are no more to come. */
static void close_object(struct fd_dump *d, uint32_t number)
{
	struct fd_object *o = fd_object_at(d, number);

	o->o.size = o->bytes.len;
}

int uring_dump_finish(struct fd_dump *d, struct err *e)
{
	for (size_t i = 0; i < buf_count(&d->rings, struct uring_seen); i++) {
		const struct uring_seen *seen = buf_at(&d->rings, struct uring_seen, i);
		struct uring_info info;
		int failed = uring_info_read(&info, seen->task, seen->fd, e);
		bool moved = !failed &&
			     (info.sq_head != seen->sq_head || info.cq_tail != seen->cq_tail);

		close_object(d, seen->object);
		uring_info_release(&info);
		if (moved)
			err_with(e, ERR_TRY_AGAIN,
				"descriptor %d (io_uring) of process %d: requests have ended "
				"while it was being saved",
				seen->fd, seen->pid);
		if (failed || moved)
			return -1;
	}
	return 0;
}
