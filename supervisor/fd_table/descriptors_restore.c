/*
 * Everything is made once, before the processes are: where the first process has it as far as
 * can be, or at any other number. Each process then puts all in its place (descriptor_numbers.c).
 */
#include "supervisor/fd_table/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "supervisor/fd_table/descriptor_numbers.h"
#include "supervisor/fd_table/kind_table.h"
#include "supervisor/fd/descriptor_range.h"
#include "supervisor/fd_kinds/epoll_restore.h"
#include "supervisor/fd/file_locks.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/signal_owner.h"
#include "supervisor/fd_kinds/inherited_stream.h"
#include "supervisor/fd_kinds/removed_directory.h"
#include "supervisor/fd/reopen_despite_mode.h"
#include "supervisor/fd/trial_stand_in.h"
#include "supervisor/fd_kinds/pty.h"
#include "supervisor/socket/sockets_restore.h"
#include "supervisor/sysv/sysv.h"

/* What F_SETFL changes; for O_ASYNC see set_async(). */
#define STATUS_FLAGS (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME)

/* ---- what the process has ---- */

static void find_mapped(struct fd_restore *r, const struct image *process)
{
	const struct image_region *regions;
	size_t count;

	regions = image_note_array(process, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if ((regions[i].kind == IMAGE_REGION_SHARED ||
			    regions[i].kind == IMAGE_REGION_PRIVATE) &&
			regions[i].object && regions[i].object <= r->object_count)
			r->made[regions[i].object - 1].mapped = true;
}

/* Everything from here on is about process @index. */
static void turn_to(struct fd_restore *r, size_t index)
{
	const struct image *process = r->checkpoint->processes[index];
	const struct image_process *p;
	size_t count;

	p = image_note_array(process, IMAGE_NOTE_PROCESS, struct image_process, &count);
	r->process = index;
	r->pid = count ? p->pid : 0;
	r->fds = image_note_array(process, IMAGE_NOTE_FDS, struct image_fd, &r->fd_count);
}

static struct fd_restore *new_restore(const struct checkpoint *c)
{
	struct fd_restore *r = xcalloc(1, sizeof(*r));

	r->checkpoint = c;
	r->job = c->job;
	r->descriptions = image_note_array(c->job, IMAGE_NOTE_DESCRIPTIONS,
		struct image_description, &r->description_count);
	r->objects = image_note_array(
		c->job, IMAGE_NOTE_OBJECTS, struct image_object, &r->object_count);
	r->open = xcalloc(r->description_count, sizeof(*r->open));
	r->number = xcalloc(r->description_count, sizeof(*r->number));
	r->holder = xcalloc(r->description_count, sizeof(*r->holder));
	r->kinds = xcalloc(r->description_count, sizeof(*r->kinds));
	r->made = xcalloc(r->object_count, sizeof(*r->made));
	for (size_t i = 0; i < r->description_count; i++) {
		r->open[i] = r->number[i] = -1;
		r->kinds[i] = fd_kind_find(r->descriptions[i].kind);
	}
	for (size_t i = 0; i < r->object_count; i++)
		r->made[i].fd = r->made[i].writer = -1;
	for (size_t i = 0; i < c->process_count; i++) {
		turn_to(r, i);
		find_mapped(r, c->processes[i]);
	}
	turn_to(r, 0);
	for (size_t i = r->fd_count; i-- > 0;)
		r->number[r->fds[i].description] = r->fds[i].fd;
	return r;
}

static void free_restore(struct fd_restore *r)
{
	free(r->open);
	free(r->number);
	free(r->holder);
	free(r->kinds);
	free(r->made);
	buf_free(&r->fired);
	free(r);
}

/* ---- descriptions ---- */

/* The owners of descriptions that no process before this one has. */
static int set_owners(struct fd_restore *r, struct err *e)
{
	for (size_t i = 0; i < r->fd_count; i++) {
		uint32_t index = r->fds[i].description;

		if (r->holder[index] == r->process && fd_owner_set(r, index, e))
			return err_prefix(e, "descriptor %d", r->fds[i].fd);
	}
	return 0;
}

/* Of the standard streams, which others may use as well, only what a program cannot do
 * without is set. */
static int set_flags(const struct image_description *x, int fd, struct err *e)
{
	int mask = fd_is_shared_stream(x) ? O_NONBLOCK : STATUS_FLAGS;
	int now = fcntl(fd, F_GETFL);

	if (now >= 0 && (now & mask) == ((int)x->flags & mask))
		return 0;
	if (now < 0 || fcntl(fd, F_SETFL, (now & ~mask) | ((int)x->flags & mask)))
		return err_set(e, errno, "cannot set the flags of a descriptor");
	return 0;
}

static int restore_description(struct fd_restore *r, uint32_t index, struct err *e)
{
	const struct image_description *x = &r->descriptions[index];
	const struct fd_kind *kind = r->kinds[index];
	int fd;

	if (r->open[index] >= 0)
		return 0;
	if (!kind)
		return err_set(e, 0, "unknown kind %u", x->kind);
	fd = r->options->alive ? fd_stand_in(r, e) : kind->restore(r, x, e);
	if (fd >= 0 && (r->options->alive || !(kind->traits & FD_IN_PLACE)))
		fd = fd_lift_into(r, index, fd, e);
	if (fd < 0)
		return -1;
	r->open[index] = fd;
	r->holder[index] = r->process;
	return x->flags & O_PATH || r->options->alive ? 0 : set_flags(x, fd, e);
}

/* An unknown kind fails when it is made. */
static bool is_of_stage(const struct fd_restore *r, uint32_t description, enum fd_stage stage)
{
	const struct fd_kind *kind = r->kinds[description];

	return (kind ? kind->stage : FD_BESIDE_OTHERS) == stage;
}

/* It was only to be checked: the lower half opens it. */
static bool is_of_lower_half(const struct image_description *x)
{
	return x->kind == IMAGE_FD_REGULAR && x->args[1];
}

/* Descriptions that are in messages only. */
static int restore_placeless(struct fd_restore *r, enum fd_stage stage, struct err *e)
{
	turn_to(r, 0);
	for (size_t i = 0; i < r->description_count; i++)
		if (is_of_stage(r, i, stage) && !is_of_lower_half(&r->descriptions[i]) &&
			restore_description(r, i, e))
			return err_prefix(e, "a descriptor in a message");
	return 0;
}

/* They have names, by which descriptors lead to them. */
static int make_shm_files(struct fd_restore *r, struct err *e)
{
	for (uint32_t n = 1; n <= r->object_count; n++)
		if (r->objects[n - 1].kind == IMAGE_OBJECT_SHM_FILE && !fd_made_get(r, n, e))
			return -1;
	return 0;
}

/* Descriptions of all processes. */
static int restore_descriptions(struct fd_restore *r, enum fd_stage stage, struct err *e)
{
	for (size_t p = 0; p < r->checkpoint->process_count; p++) {
		turn_to(r, p);
		for (size_t i = 0; i < r->fd_count; i++) {
			uint32_t index = r->fds[i].description;

			if (is_of_stage(r, index, stage) && restore_description(r, index, e))
				return err_prefix(e, "descriptor %d", r->fds[i].fd);
		}
	}
	return restore_placeless(r, stage, e);
}

static int restore_all(struct fd_restore *r, struct err *e)
{
	if (sysv_restore(r, e) || make_shm_files(r, e) || fd_removed_make(r, e) ||
		restore_descriptions(r, FD_FIRST, e) || fd_epolls_begin(r, e) ||
		socket_restore_begin(r, e) || restore_descriptions(r, FD_BESIDE_OTHERS, e) ||
		restore_descriptions(r, FD_LATE, e) || restore_descriptions(r, FD_LAST, e))
		return -1;
	for (uint32_t n = 1; n <= r->object_count; n++)
		if (r->made[n - 1].mapped && !fd_made_get(r, n, e))
			return -1;
	/* Watches are to see nothing of what files without a name get in their directories. */
	return fd_made_finish(r, e) || fd_inotifies_watch(r, e) ||
			       socket_restore_finish(r, e) || fd_epolls_fire(r, e) ||
			       fd_ptys_finish(r, e) || fd_owners_finish(r, e)
		       ? -1
		       : 0;
}

/* In a trial: numbers are taken, and there is something to be mapped. */
static int stand_in_for_all(struct fd_restore *r, struct err *e)
{
	if (sysv_restore(r, e))
		return -1;
	for (enum fd_stage stage = 0; stage < FD_STAGES; stage++)
		if (restore_descriptions(r, stage, e))
			return -1;
	for (uint32_t n = 1; n <= r->object_count; n++)
		if (r->made[n - 1].mapped && fd_stand_in_memory(r, n, e))
			return -1;
	return 0;
}

/* A stream that is closed is missed only where a description wants it. */
static void lift_streams(struct fd_restore *r, const int std[3])
{
	for (int i = 0; i < 3; i++)
		r->streams[i] = descriptor_range_dup(r, std[i], F_DUPFD_CLOEXEC);
}

/* ---- in their places ---- */

/* The signals name the number by which O_ASYNC was set, so only now. */
static int set_async(const struct fd_restore *r, struct err *e)
{
	for (size_t i = 0; i < r->fd_count; i++) {
		uint32_t index = r->fds[i].description;
		const struct image_description *x = &r->descriptions[index];
		int fd = r->fds[i].fd, now;

		if (!(x->flags & O_ASYNC) || x->flags & O_PATH || !fd_owner_is_ours(r, index))
			continue;
		now = fcntl(fd, F_GETFL);
		/* Set by a lower number of the same description. */
		if (now >= 0 && now & O_ASYNC)
			continue;
		if (now < 0 || fcntl(fd, F_SETFL, now | O_ASYNC))
			return err_set(e, errno, "cannot set the flags of descriptor %d", fd);
	}
	return 0;
}

/* But for POSIX locks: restore/posix_locks_restore.c. */
static int lock_all(const struct fd_restore *r, struct err *e)
{
	cleanup_free bool *done = xcalloc(r->description_count, sizeof(*done));

	for (size_t i = 0; i < r->fd_count; i++) {
		uint32_t index = r->fds[i].description;
		const struct image_description *x = &r->descriptions[index];

		if (!(r->kinds[index]->traits & FD_CAN_LOCK) || !x->args[0] || done[index])
			continue;
		done[index] = true;
		if (fd_locks_restore(r->fds[i].fd, image_string(r->job, x->args[0]),
			    image_string(r->job, x->path), e))
			return -1;
	}
	return 0;
}

struct fd_restore *fd_restore_new(const struct checkpoint *c,
	const struct fd_restore_options *o, const int std[3], struct err *e)
{
	struct fd_restore *r = new_restore(c);
	int failed;

	r->options = o;
	if (descriptor_range_find(r, e) || descriptor_range_begin(r, e)) {
		free_restore(r);
		return NULL;
	}
	lift_streams(r, std);
	failed = o->alive ? stand_in_for_all(r, e) : restore_all(r, e);
	for (size_t i = 0; i < r->object_count; i++)
		r->made[i].first = r->made[i].fd;
	fd_pidfds_finish(r);
	socket_restore_end(r);
	if (failed) {
		(void)descriptor_range_close(r, NULL); /* there is an error to tell already */
		free_restore(r);
		return NULL;
	}
	return r;
}

static int place_descriptors(struct fd_restore *r, int *keep, struct err *e)
{
	cleanup_descriptor_numbers struct descriptor_numbers p = {0};

	if (!r->options->alive && set_owners(r, e))
		return -1;
	descriptor_numbers_begin(&p, r, keep);
	if (descriptor_numbers_fill(&p, e))
		return -1;
	if (r->options->alive)
		return descriptor_numbers_close_rest(&p, keep, e);
	if (fd_pidfd_place(r, e) || fd_epolls_watch(r, e) ||
		descriptor_numbers_close_rest(&p, keep, e))
		return -1;
	return set_async(r, e) || lock_all(r, e) ? -1 : 0;
}

int fd_restore_process(struct fd_restore *r, size_t index, int *keep, struct err *e)
{
	int failed;

	turn_to(r, index);
	for (size_t i = 0; i < r->object_count; i++)
		r->made[i].mapped = false;
	for (size_t i = index; i < r->checkpoint->process_count; i++)
		if (checkpoint_owner(r->checkpoint, i, IMAGE_SHARED_FILES) == index)
			find_mapped(r, r->checkpoint->processes[i]);
	failed = place_descriptors(r, keep, e);
	failed |= descriptor_range_close(r, failed ? NULL : e);
	return failed ? -1 : 0;
}

void fd_restore_for_another(struct fd_restore *r)
{
	r->for_another = true;
}

int fd_restore_open(struct fd_restore *r, uint32_t description, struct err *e)
{
	int fd, code;

	BUG_ON(description >= r->description_count);
	if (descriptor_range_begin(r, e))
		return -1;
	fd = descriptor_range_dup(r, r->open[description], F_DUPFD);
	code = errno;
	if (descriptor_range_close(r, fd < 0 ? NULL : e))
		return -1;
	return fd >= 0 ? fd : descriptor_range_none(r, code, e);
}

int fd_restore_object(struct fd_restore *r, uint32_t object, bool writable, struct err *e)
{
	struct fd_made *made;
	int fd, code;

	if (!object || object > r->object_count || r->made[object - 1].fd < 0 ||
		!r->made[object - 1].mapped)
		return err_set(e, 0, "the image is damaged: no region maps object %u", object);
	made = &r->made[object - 1];
	if (descriptor_range_begin(r, e))
		return -1;
	/* Only a descriptor for reading can be mapped shared when it is sealed with F_SEAL_WRITE,
	 * before Linux 6.7. */
	if (r->objects[object - 1].kind == IMAGE_OBJECT_MEMFD &&
		(!writable || r->objects[object - 1].args[0] & F_SEAL_WRITE)) {
		cleanup_free char *path = xasprintf("/proc/self/fd/%d", made->fd);
		cleanup_fd int reader = open(path, O_RDONLY | O_CLOEXEC);

		fd = descriptor_range_dup(r, reader, F_DUPFD);
		code = errno;
	} else if (!made->given) {
		/* The first request gets the descriptor itself. */
		fd = fcntl(made->fd, F_SETFD, 0) ? -1 : made->fd;
		code = errno;
		made->given = true;
	} else {
		fd = descriptor_range_dup(r, made->fd, F_DUPFD);
		code = errno;
	}
	if (descriptor_range_close(r, fd < 0 ? NULL : e))
		return -1;
	return fd >= 0 ? fd : descriptor_range_none(r, code, e);
}
