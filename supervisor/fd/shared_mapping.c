/*
 * fd/shared_mapping.c - shared mappings of what is memory: the object behind one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/procfs.h"
#include "lib/uring_abi.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd/parent_directories.h"
#include "supervisor/fd/shared_mapping.h"
#include "supervisor/fd/shared_window.h"
#include "supervisor/fd/shm_file.h"
#include "supervisor/target/process.h"

static bool starts_with(const char *s, const char *start)
{
	return !strncmp(s, start, strlen(start));
}

static bool is_deleted(const char *name)
{
	static const char suffix[] = " (deleted)";
	size_t n = strlen(name), k = sizeof(suffix) - 1;

	return n > k && !strcmp(name + n - k, suffix);
}

/* What @name in /proc/PID/maps can be told to be that is not for us to save, or NULL. */
static const char *refusal_of(const char *name)
{
	if (starts_with(name, "/secretmem"))
		return "secret memory (memfd_secret) is not supported";
	if (starts_with(name, "socket:"))
		return "rings and other memory of sockets (PACKET_RX_RING, as libpcap's; "
		       "AF_XDP) are not supported";
	if (name[0] != '/')
		return "shared mappings of this kind are not supported yet";
	return NULL;
}

static int refuse_mapping(const struct vma *v, pid_t pid, const char *reason, struct err *e)
{
	return err_set(e, 0, "mapping %" PRIx64 "-%" PRIx64 " (%s) of process %d: %s", v->start,
		v->end, v->name, pid, reason);
}

/* The kernel's numbers for a file differ between maps and fstat(2) on some file systems
 * (btrfs, overlayfs), the name and the inode number do not. */
static uint32_t find_object(
	const struct fd_dump *d, uint64_t dev, uint64_t inode, const char *name)
{
	uint32_t number = fd_object_find(d, dev, inode);
	size_t count = buf_count(&d->objects, struct fd_object);

	for (uint32_t n = 1; !number && n <= count; n++) {
		const struct fd_object *o = fd_object_at(d, n);

		if (o->o.inode == inode && o->o.kind == IMAGE_OBJECT_UNLINKED && o->link &&
			!strcmp(o->link, name))
			number = n;
	}
	return number;
}

/* There is a device of the kernel's own for each size of huge pages, too. */
static enum image_object_kind kind_of(const struct fd_dump *d, const struct vma *v)
{
	if (v->dev != d->memory_device && !(v->flags & VMA_HUGETLB))
		return IMAGE_OBJECT_UNLINKED;
	if (starts_with(v->name, "/memfd:"))
		return IMAGE_OBJECT_MEMFD;
	if (v->flags & VMA_HUGETLB && !starts_with(v->name, "/anon_hugepage"))
		return IMAGE_OBJECT_UNLINKED;
	return IMAGE_OBJECT_SHARED_ANON;
}

/* The mapping itself leads to the file, with CAP_CHECKPOINT_RESTORE; or a name.
 */
static void look_at_file(struct fd_object *o)
{
	cleanup_fd int fd = fd_object_open(o);
	struct stat st;
	int seals;

	if (fd < 0 || fstat(fd, &st)) {
		free(o->file);
		o->file = NULL;
		return;
	}
	o->o.size = st.st_size;
	o->o.mode = st.st_mode & 07777;
	seals = fcntl(fd, F_GET_SEALS);
	if (o->o.kind == IMAGE_OBJECT_MEMFD && seals > 0)
		o->o.args[0] = seals;
	if (o->o.kind == IMAGE_OBJECT_UNLINKED)
		o->o.args[0] = st.st_nlink;
	if (o->o.kind == IMAGE_OBJECT_SHM_FILE)
		o->o.args[1] = st.st_uid | (uint64_t)st.st_gid << 32;
}

/* @name: that of a SHM_FILE. */
static uint32_t add_object(struct fd_dump *d, pid_t pid, const struct vma *v, const char *name)
{
	cleanup_free char *path = xstrdup(name ? name : v->name);
	struct fd_object o = {
		.o =
			{
				.kind = name ? IMAGE_OBJECT_SHM_FILE : kind_of(d, v),
				.dev = v->dev,
				.inode = v->inode,
				.mode = 0600,
				.flags = v->flags & VMA_HUGETLB ? __builtin_ctzll(v->page_size)
								: 0,
			},
		.pid = pid,
		.task = pid,
		.fd = -1,
		.text = xasprintf("shared memory %s of process %d", v->name, pid),
		.link = xstrdup(v->name),
		.file = name ? xstrdup(name)
			     : xasprintf("/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid,
				       v->start, v->end),
	};

	if (!name && is_deleted(path))
		*strrchr(path, ' ') = 0;
	if (name)
		fd_parents_dump(d, name);
	o.o.name = image_writer_string(d->job, path);
	look_at_file(&o);
	return fd_object_add(d, &o);
}

/* A file on a disk, or a file that is only read: a process that may only read a file of a tmpfs opens it
 * again, when it has been made for another process. A name may end in " (deleted)" by itself. */
static bool is_plain_file(const struct vma *v)
{
	struct stat st;

	if (is_deleted(v->name) && (lstat(v->name, &st) || st.st_ino != v->inode))
		return false;
	return !(v->max_prot & PROT_WRITE) || !fd_shm_file_is_memory(v->name);
}

/* It is made again by descriptor. */
static int find_ring(const struct fd_dump *d, pid_t pid, const struct vma *v, struct err *e)
{
	for (uint32_t n = 1; n <= buf_count(&d->objects, struct fd_object); n++) {
		const struct image_object *o = &fd_object_at(d, n)->o;

		if (o->kind == IMAGE_OBJECT_URING && o->inode == v->inode)
			return n;
	}
	return refuse_mapping(v, pid, "no descriptor refers to this io_uring any more", e);
}

static bool is_object(const struct fd_object *o)
{
	return o->o.kind == IMAGE_OBJECT_MEMFD || o->o.kind == IMAGE_OBJECT_SHARED_ANON ||
	       o->o.kind == IMAGE_OBJECT_UNLINKED;
}

/* A file without a name that a process of the tree has mapped shared. */
struct fd_mapped_file {
	uint64_t dev, inode;
};

static int list_shared_files(struct fd_dump *d, struct err *e)
{
	struct vma_list list;

	for (size_t i = 0; i < d->tree->living; i++) {
		if (procfs_maps(d->tree->processes[i]->task, &list, e))
			return -1;
		for (size_t k = 0; k < list.count; k++) {
			const struct vma *v = &list.v[k];
			struct fd_mapped_file file = {v->dev, v->inode};

			if (v->shared && is_deleted(v->name))
				buf_push(&d->shared_files, struct fd_mapped_file, &file);
		}
		vma_list_free(&list);
	}
	d->knows_shared_files = true;
	return 0;
}

/* Whether somebody in the tree has @v's file mapped shared, and so can still write to it. */
static int is_shared_too(struct fd_dump *d, const struct vma *v, bool *shared, struct err *e)
{
	*shared = false;
	if (!d->tree)
		return 0;
	if (!d->knows_shared_files && list_shared_files(d, e))
		return -1;
	for (size_t i = 0; i < buf_count(&d->shared_files, struct fd_mapped_file); i++) {
		const struct fd_mapped_file *f =
			buf_at(&d->shared_files, struct fd_mapped_file, i);

		*shared |= f->dev == v->dev && f->inode == v->inode;
	}
	return 0;
}

/* Whether @v itself opens its file. */
static bool opens_by_itself(const struct fd_dump *d, pid_t pid, const struct vma *v)
{
	cleanup_free char *file =
		xasprintf("/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, v->start, v->end);
	cleanup_fd int fd = -1;

	if (v->dev == d->memory_device && !(v->flags & VMA_HUGETLB))
		fd = open(file, O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}

/* Sets @number of a file that shared mappings lead to, which may come later, in another process, and supply
 * its contents; 0 where nobody can write to the file any more. */
static int add_by_private(
	struct fd_dump *d, pid_t pid, const struct vma *v, uint32_t *number, struct err *e)
{
	bool shared = opens_by_itself(d, pid, v);

	if (!shared && is_shared_too(d, v, &shared, e))
		return -1;
	*number = shared ? add_object(d, pid, v, NULL) : 0;
	return 0;
}

int fd_dump_private_mapping(struct fd_dump *d, pid_t pid, const struct vma *v, struct err *e)
{
	uint32_t number = find_object(d, v->dev, v->inode, v->name);
	struct fd_object *o;

	if (!number && add_by_private(d, pid, v, &number, e))
		return -1;
	if (!number)
		return 0;
	o = fd_object_at(d, number);
	if (!is_object(o))
		return 0;
	o->is_mapped = o->is_mapped_to_read = o->is_mapped_private = true;
	return number;
}

/* The stub maps all of such a file at once; what the program has unmapped the others need all the same. */
static int look_for_part(const struct fd_dump *d, pid_t pid, const struct vma *v,
	struct fd_object *o, struct err *e)
{
	if (o->has_part || v->offset || !fd_window_is(v->name))
		return 0;
	o->has_part = true;
	return fd_window_part(pid, v->start, d->job_rank, &o->part_from, &o->part_to, e);
}

int fd_dump_mapping(
	struct fd_dump *d, pid_t pid, const struct vma *v, bool *need_memory, struct err *e)
{
	const char *reason = refusal_of(v->name);
	cleanup_free char *name = NULL;
	uint32_t number;
	struct fd_object *o;

	*need_memory = false;
	if (!strcmp(v->name, URING_LINK))
		return find_ring(d, pid, v, e);
	if (reason)
		return refuse_mapping(v, pid, reason, e);
	if (is_plain_file(v))
		return 0;
	number = find_object(d, v->dev, v->inode, v->name);
	if (!number) {
		name = fd_shm_file_name(v->name, v->dev, v->inode);
		number = add_object(d, pid, v, name);
	}
	o = fd_object_at(d, number);
	if (o->o.kind == IMAGE_OBJECT_SHM_FILE && !o->file)
		return refuse_mapping(v, pid,
			"it is a file in memory that this user must not read: run trecr as "
			"root",
			e);
	if (look_for_part(d, pid, v, o, e))
		return -1;
	o->is_mapped = true;
	o->is_mapped_to_read |= !(v->max_prot & PROT_WRITE);
	*need_memory = !o->file;
	return number;
}

bool fd_dump_has_holes(const struct fd_dump *d, const struct vma *v)
{
	return (v->dev == d->memory_device || fd_window_is(v->name)) &&
	       !(v->flags & VMA_HUGETLB) && !v->swapped;
}

void fd_dump_part(const struct fd_dump *d, uint32_t object, uint64_t *from, uint64_t *to)
{
	const struct fd_object *o = fd_object_at(d, object);

	*from = o->has_part ? o->part_from : 0;
	*to = o->has_part ? o->part_to : UINT64_MAX;
}

void fd_dump_mapped(struct fd_dump *d, struct process *p, const struct vma *v, uint64_t end,
	uint32_t object)
{
	struct fd_object *o = fd_object_at(d, object);
	struct fd_mapped mapped = {p, v->start, v->offset, v->offset + (end - v->start)};
	size_t count = buf_count(&o->mapped, struct fd_mapped);
	const struct fd_mapped *last =
		count ? buf_at(&o->mapped, struct fd_mapped, count - 1) : NULL;

	if (last && last->process == p && mapped.start == last->start + last->to - last->from &&
		mapped.from != last->to)
		o->reordered = true;
	if (mapped.from == mapped.to)
		return;
	buf_push(&o->mapped, struct fd_mapped, &mapped);
	o->size_known |= end < v->end;
	if (o->o.size < mapped.to)
		o->o.size = mapped.to;
}
