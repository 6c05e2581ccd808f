/*
 * The descriptors of all processes at a checkpoint: each description is saved once, by the kind
 * that knows it (kind_table.c).
 */
#include "supervisor/fd_table/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "lib/limits.h"
#include "lib/procfs.h"
#include "shared/batch.h"
#include "supervisor/fd/descriptor_range.h"
#include "supervisor/fd/file_locks.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd/signal_owner.h"
#include "supervisor/fd_kinds/epoll_dump.h"
#include "supervisor/fd_kinds/inherited_stream.h"
#include "supervisor/fd_kinds/pipe_holders.h"
#include "supervisor/fd_kinds/pty.h"
#include "supervisor/fd_kinds/saved_directories_dump.h"
#include "supervisor/fd_table/descriptors_count.h"
#include "supervisor/fd_table/descriptors_list.h"
#include "supervisor/fd_table/kind_table.h"
#include "supervisor/socket/socket_families.h"
#include "supervisor/socket/sockets_dump.h"
#include "supervisor/target/kcmp_search.h"
#include "supervisor/target/process.h"
#include "supervisor/target/task_pidfd.h"
#include "supervisor/uring/uring.h"

static void look_at_stream(struct fd_stream *stream, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, &stream->st))
		return;
	stream->access = flags & O_ACCMODE;
	stream->terminal = fd_terminal_of(fd);
	stream->usable =
		isatty(fd) || S_ISFIFO(stream->st.st_mode) || S_ISSOCK(stream->st.st_mode);
}

/* All memfds and anonymous shared memory are on one device of the kernel's own. */
static dev_t memory_device(void)
{
	cleanup_fd int fd = memfd_create("trecr", MFD_CLOEXEC);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) ? st.st_dev : 0;
}

static struct fd_stream standard_streams[3];
static uint64_t controlling_terminal;

void fd_remember_streams(void)
{
	cleanup_fd int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	controlling_terminal = tty < 0 ? 0 : fd_terminal_of(tty);
	for (int i = 0; i < 3; i++)
		look_at_stream(&standard_streams[i], i);
}

void fd_dump_tree(struct fd_dump *d, const struct tree *tree)
{
	d->tree = tree;
}

void fd_dump_rank(struct fd_dump *d, int rank)
{
	d->job_rank = rank;
}

void fd_dump_save_files(
	struct fd_dump *d, uint64_t size, const char *directories, bool program_resumes)
{
	d->save_directories = directories;
	d->save_files = size;
	d->program_resumes = program_resumes;
}

static size_t description_count(const struct fd_dump *d)
{
	return buf_count(&d->descriptions, struct fd_described);
}

static struct fd_described *description_at(const struct fd_dump *d, uint32_t i)
{
	return buf_at(&d->descriptions, struct fd_described, i);
}

void fd_dump_free(struct fd_dump *d)
{
	for (size_t i = 0; i < description_count(d); i++)
		free(description_at(d, i)->locks);
	fd_ptys_free(d);
	fd_objects_free(d);
	fd_epolls_free(d);
	fd_inotifies_free(d, true);
	socket_dump_free(d);
	for (size_t i = 0; i < buf_count(&d->received, int); i++)
		close(*buf_at(&d->received, int, i));
	buf_free(&d->received);
	buf_free(&d->descriptions);
	buf_free(&d->known);
	buf_free(&d->pids);
	buf_free(&d->rings);
	buf_free(&d->shared_files);
	free(d);
}

/* ---- which descriptors share a description ---- */

/* As kcmp(2): 0 the same, 1 less, 2 greater; -1 on failure. */
static int compare_known(const struct fd_known *a, const struct fd_source *b, struct err *e)
{
	int r;

	if (a->dev != b->st.st_dev)
		return a->dev < b->st.st_dev ? 1 : 2;
	if (a->inode != b->st.st_ino)
		return a->inode < b->st.st_ino ? 1 : 2;
	r = syscall(SYS_kcmp, a->task, b->task, KCMP_FILE, (long)a->fd, (long)b->fd);
	if (r < 0 || r > 2)
		return limit_err(
			e, r < 0 ? errno : 0, SYS_kcmp, "cannot compare it with others (kcmp)");
	return r;
}

struct known_search {
	const struct fd_dump *d;
	const struct fd_source *s;
};

static int compare_at(const void *context, size_t i, struct err *e)
{
	const struct known_search *search = context;

	return compare_known(buf_at(&search->d->known, struct fd_known, i), search->s, e);
}

/* Find @s in d->known: *at is its place, or where it is to be put. 1 found, 0 not. */
static int find_known(
	const struct fd_dump *d, const struct fd_source *s, size_t *at, struct err *e)
{
	const struct known_search search = {d, s};

	return kcmp_search(buf_count(&d->known, struct fd_known), compare_at, &search, at, e);
}

/* Make room for an element of @size bytes at index @at of @b. */
static void *insert_element(struct buf *b, size_t at, size_t size)
{
	char *p;

	buf_grow(b, size);
	p = (char *)b->data + at * size;
	memmove(p + size, p, b->len - (at + 1) * size);
	return p;
}

/* ---- a description ---- */

static int fill_description(struct fd_dump *d, const struct fd_kind *kind,
	const struct fd_source *s, struct image_description *x, struct err *e)
{
	*x = (struct image_description){
		.kind = kind->kind,
		.flags = s->flags,
		.position = s->position,
		.dev = s->st.st_dev,
		.inode = s->st.st_ino,
	};
	if (!(s->flags & O_PATH) && fd_owner_dump(d, kind, s, x, e))
		return -1;
	return kind->dump(d, s, x, e);
}

/* The standard streams are saved by number, not by description: a terminal behind all three
 * may be three different files at the restart. */
static uint32_t *inherited_slot(struct fd_dump *d, const struct image_description *x)
{
	return fd_is_shared_stream(x) ? &d->inherited[x->args[0]] : NULL;
}

static int add_description(
	struct fd_dump *d, const struct fd_source *s, size_t at, uint32_t *index, struct err *e)
{
	const struct fd_kind *kind = fd_kind_match(d, s);
	struct fd_described new = {.kind = kind};
	struct fd_known *known;
	uint32_t *slot;

	if (!kind)
		return S_ISSOCK(s->st.st_mode) ? socket_refuse(s->dup, e)
					       : fd_unsupported(d, s, e);
	if (fill_description(d, kind, s, &new.x, e))
		return -1;
	slot = inherited_slot(d, &new.x);
	if (slot && *slot) {
		*index = *slot - 1;
		return 0;
	}
	*index = description_count(d);
	buf_push(&d->descriptions, struct fd_described, &new);
	if (slot)
		*slot = *index + 1;
	known = slot ? &d->inherited_of[new.x.args[0]]
		     : insert_element(&d->known, at, sizeof(*known));
	*known = (struct fd_known){s->st.st_dev, s->st.st_ino, s->task, s->fd, *index};
	return 0;
}

/* A description's locks show at each of its descriptors, POSIX ones at their owner's only. */
static int add_locks(
	struct fd_dump *d, const struct fd_source *s, uint32_t index, struct err *e)
{
	struct fd_described *to = description_at(d, index);
	bool first = !to->locks_of;

	if (to->locks_of == s->pid)
		return 0;
	to->locks_of = s->pid;
	return fd_locks_dump(s, to->kind->traits & FD_CAN_LOCK, first, &to->locks, e);
}

static int dump_source(
	struct fd_dump *d, const struct fd_source *s, uint32_t *index, struct err *e)
{
	size_t at = 0;
	int found = find_known(d, s, &at, e);

	if (found < 0)
		return -1;
	if (found)
		*index = buf_at(&d->known, struct fd_known, at)->description;
	else if (add_description(d, s, at, index, e))
		return -1;
	return add_locks(d, s, *index, e);
}

/* ---- a process ---- */

/* A right to use part of a GPU, which the kernel's driver duplicates to whatever number is
 * free, and closes by that number (nv_cap_validate_and_dup_fd(), nv-caps.c): it cannot be moved
 * to where the lower half's are. */
static bool is_drivers(const struct fd_source *s, int limit)
{
	return limit != LOWER_FD_BASE && !strncmp(s->link, "/dev/nvidia-caps/", 17);
}

/* Whether the same table leads to it from a lower number as well. */
static bool is_duplicate(struct fd_dump *d, uint32_t description)
{
	struct fd_described *x = description_at(d, description);
	bool seen = x->table == d->tables;

	x->table = d->tables;
	return seen;
}

static int dump_descriptor(struct fd_dump *d, pid_t pid, pid_t task, int pidfd, int fd,
	int limit, struct image_writer *process, uint64_t *duplicates, struct err *e)
{
	struct image_fd entry = {.fd = fd};
	struct fd_source s;
	int r = fd_source_look(&s, pid, task, pidfd, fd, e);

	if (!r && is_drivers(&s, limit)) {
		fd_source_release(&s);
		return 0;
	}
	if (!r) {
		entry.cloexec = s.cloexec;
		r = dump_source(d, &s, &entry.description, e);
		if (r) {
			cleanup_free char *text = fd_source_text(&s);

			err_prefix(e, "%s", text);
		}
	}
	if (!r) {
		*duplicates += is_duplicate(d, entry.description);
		image_writer_note(process, IMAGE_NOTE_FDS, &entry, sizeof(entry));
	}
	fd_source_release(&s);
	return r;
}

/* ---- a thread with descriptors of its own (unshare(CLONE_FILES)) ---- */

/* They would have to be made by one another. */
static int refuse_common_table(const struct fd_dump *d, pid_t pid, pid_t tid, struct err *e)
{
	for (size_t i = 0; i < d->tree->living; i++) {
		const struct process *p = d->tree->processes[i];

		for (size_t k = 0; k < p->thread_count; k++) {
			pid_t other = p->threads[k].tracee.tid;

			if (other != tid && !syscall(SYS_kcmp, other, tid, KCMP_FILES, 0L, 0L))
				return err_set(e, 0,
					"threads %d and %d share descriptors that are not "
					"those of process %d, which is not supported",
					other, tid, pid);
		}
	}
	return 0;
}

/* What is set by number in a process, or belongs to its table, has no place here. */
static int check_in_thread(
	const struct fd_source *s, const struct fd_described *x, bool new, struct err *e)
{
	if (x->kind->traits & FD_OF_TASK || strstr(s->info, "POSIX") ||
		(new && (x->x.owner || x->x.flags & O_ASYNC || strstr(s->info, "lock:"))))
		return err_set(e, 0,
			"a pidfd, a file of /proc, or a file with an owner (F_SETOWN) or locks "
			"cannot be saved in a thread's own table of descriptors "
			"(unshare(CLONE_FILES))");
	return 0;
}

static int dump_in_thread(struct fd_dump *d, pid_t pid, pid_t tid, pid_t vtid, int pidfd,
	int fd, struct image_writer *process, struct err *e)
{
	struct image_thread_fd entry = {.tid = vtid, .fd = fd};
	size_t known = description_count(d);
	struct fd_source s;
	int r = fd_source_look(&s, pid, tid, pidfd, fd, e);

	if (!r) {
		cleanup_free char *text = fd_source_text(&s);

		entry.cloexec = s.cloexec;
		r = dump_source(d, &s, &entry.description, e);
		if (!r)
			r = check_in_thread(&s, description_at(d, entry.description),
				entry.description >= known, e);
		if (r)
			err_prefix(e, "%s, thread %d", text, tid);
	}
	d->in_threads++;
	if (!r)
		image_writer_note(process, IMAGE_NOTE_THREAD_FDS, &entry, sizeof(entry));
	fd_source_release(&s);
	return r;
}

static int dump_thread(
	struct fd_dump *d, pid_t pid, pid_t tid, struct image_writer *process, struct err *e)
{
	cleanup_free char *status = procfs_status(pid, tid, e);
	cleanup_buf struct buf numbers = {0};
	struct image_thread_fd none = {.fd = -1};
	cleanup_fd int pidfd = -1;

	if (!status || refuse_common_table(d, pid, tid, e))
		return -1;
	pidfd = fd_task_open(pid, tid, e);
	if (pidfd < 0 || descriptors_list(tid, INT_MAX, &numbers, e))
		return -1;
	/* A table may be empty. */
	none.tid = status_last_number(status, "NSpid");
	image_writer_incompat(process, IMAGE_INCOMPAT_APART);
	image_writer_note(process, IMAGE_NOTE_THREAD_FDS, &none, sizeof(none));
	for (size_t i = 0; i < buf_count(&numbers, int); i++)
		if (dump_in_thread(d, pid, tid, none.tid, pidfd, *buf_at(&numbers, int, i),
			    process, e))
			return -1;
	return 0;
}

int fd_dump_threads(
	struct fd_dump *d, pid_t pid, bool lower, struct image_writer *process, struct err *e)
{
	cleanup_buf struct buf own = {0};
	pid_t task;

	if (descriptors_task(pid, &task, &own, e))
		return -1;
	for (size_t i = 0; i < buf_count(&own, pid_t); i++) {
		if (lower)
			return err_set(e, 0,
				"thread %d of process %d has descriptors of its own and uses a "
				"GPU, which is not supported",
				*buf_at(&own, pid_t, i), pid);
		if (dump_thread(d, pid, *buf_at(&own, pid_t, i), process, e))
			return -1;
	}
	return 0;
}

/* ---- */

int fd_dump_process(
	struct fd_dump *d, pid_t pid, struct image_writer *process, int limit, struct err *e)
{
	cleanup_buf struct buf numbers = {0};
	cleanup_fd int pidfd = -1;
	uint64_t duplicates = 0;
	pid_t task;

	if (descriptors_task(pid, &task, NULL, e))
		return -1;
	buf_push(&d->pids, pid_t, &pid);
	/* It is saved with the first that has it. */
	if (!process)
		return 0;
	pidfd = fd_task_open(pid, task, e);
	if (pidfd < 0 || descriptors_list(task, limit, &numbers, e))
		return -1;
	d->tables++;
	for (size_t i = 0; i < buf_count(&numbers, int); i++)
		if (dump_descriptor(d, pid, task, pidfd, *buf_at(&numbers, int, i), limit,
			    process, &duplicates, e))
			return -1;
	if (d->most_duplicates < duplicates)
		d->most_duplicates = duplicates;
	return 0;
}

int fd_dump_rings(struct fd_dump *d, struct process *p, struct err *e)
{
	return uring_dump_registered(d, p, e);
}

/* What belongs to a number in a process, or is set when all are there, is out of place in one
 * that is open nowhere. */
static int check_placeless(
	const struct fd_source *s, const struct fd_described *x, struct err *e)
{
	if (x->kind->traits & FD_OF_TASK || x->x.owner || x->x.flags & O_ASYNC ||
		strstr(s->info, "lock:"))
		return err_set(e, 0,
			"a pidfd, a file of /proc, or a file with an owner (F_SETOWN) or locks "
			"cannot be saved while only a message holds it");
	return 0;
}

static int dump_received(struct fd_dump *d, const struct fd_source *s, uint32_t *description,
	bool *keep, struct err *e)
{
	size_t at = 0;
	int found = find_known(d, s, &at, e);

	*keep = !found;
	if (found < 0)
		return -1;
	if (found) {
		*description = buf_at(&d->known, struct fd_known, at)->description;
		return 0;
	}
	return add_description(d, s, at, description, e) ||
			       check_placeless(s, description_at(d, *description), e)
		       ? -1
		       : 0;
}

static int find_received(struct fd_dump *d, int fd, uint32_t *description, struct err *e)
{
	cleanup_fd int pidfd = fd_task_open(getpid(), getpid(), e);
	struct fd_source s;
	bool keep = false;
	int r;

	if (pidfd < 0) {
		close(fd);
		return -1;
	}
	r = fd_source_look(&s, getpid(), getpid(), pidfd, fd, e);
	if (!r) {
		r = dump_received(d, &s, description, &keep, e);
		if (r)
			err_prefix(
				e, "a descriptor (%s) in a message that waits in it", s.link);
	}
	fd_source_release(&s);
	if (keep)
		buf_push(&d->received, int, &fd);
	else
		close(fd);
	return r;
}

/* The descriptor of ours stays until all is saved, as its description is known by it. */
int fd_dump_without_descriptor(struct fd_dump *d, const char *path, int flags, struct err *e)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r;
	cleanup_fd int pidfd = -1;
	struct fd_source s;
	uint32_t index;
	bool keep;

	if (fd < 0)
		return err_set(e, errno, "cannot open %s", path);
	buf_push(&d->received, int, &fd);
	pidfd = fd_task_open(getpid(), getpid(), e);
	if (pidfd < 0)
		return -1;
	r = fd_source_look(&s, getpid(), getpid(), pidfd, fd, e);
	if (!r)
		r = dump_received(d, &s, &index, &keep, e);
	if (!r)
		description_at(d, index)->x.args[1] = 1;
	else
		err_prefix(e, "%s", path);
	fd_source_release(&s);
	return r;
}

struct fd_dump *fd_dump_new(struct image_writer *job, enum fd_tcp tcp)
{
	struct fd_dump *d = xcalloc(1, sizeof(*d));

	d->job = job;
	d->find_received = find_received;
	d->tcp = tcp;
	d->memory_device = memory_device();
	d->job_rank = -1;
	memcpy(d->streams, standard_streams, sizeof(d->streams));
	d->terminal = controlling_terminal;
	return d;
}

void fd_dump_resume(struct fd_dump *d)
{
	socket_dump_resume(d);
	fd_inotifies_free(d, true);
}

bool fd_dump_keeps(const struct fd_dump *d)
{
	return socket_dump_keeps(d);
}

int fd_dump_hold(struct fd_dump *d, const uint8_t job_id[16], struct err *e)
{
	return socket_dump_hold(d, job_id, e);
}

void fd_dump_let_go(struct fd_dump *d)
{
	socket_dump_let_go(d);
	fd_inotifies_free(d, false);
}

bool fd_dump_fits(const struct fd_dump *d, uint64_t besides)
{
	return !descriptor_range_check(descriptors_count(d) + besides, NULL);
}

int fd_dump_finish(struct fd_dump *d, uint64_t besides, struct err *e)
{
	if (socket_dump_all(d, e) || fd_epolls_dump(d, e) || fd_holders_check(d, e) ||
		uring_dump_finish(d, e) ||
		descriptor_range_check(descriptors_count(d) + besides, e) ||
		fd_inotifies_take(d, e) || fd_ptys_save(d, e) || fd_saved_dump_sets(d, e) ||
		fd_objects_write(d, e))
		return -1;
	socket_dump_write(d);
	for (size_t i = 0; i < description_count(d); i++) {
		struct fd_described *described = description_at(d, i);

		if (described->locks)
			described->x.args[0] = image_writer_string(d->job, described->locks);
		image_writer_note(
			d->job, IMAGE_NOTE_DESCRIPTIONS, &described->x, sizeof(described->x));
	}
	return 0;
}
