/*
 * objects_restore.c - contents out of an image, files for each kind of object, and in the end
 * their owners, modes and seals.
 */
#include "supervisor/fd/objects_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "lib/limits.h"
#include "supervisor/fd/file_attributes.h"
#include "supervisor/fd/hugetlb_file.h"
#include "supervisor/fd/object_kinds.h"
#include "supervisor/fd/shared_window.h"
#include "supervisor/fd/shm_file.h"
#include "supervisor/fd/trusted_path.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#define MFD_EXEC        0x0010U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define PIECE_BLOCKS 256u

const struct image_object *fd_object_info(
	const struct image *job, uint32_t number, enum image_object_kind kind, struct err *e)
{
	const struct image_object *objects;
	size_t count;

	objects = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	if (!number || number > count || objects[number - 1].kind != kind) {
		err_set(e, 0, "the image is damaged: there is no object %u of kind %d", number,
			kind);
		return NULL;
	}
	return &objects[number - 1];
}

/* ---- contents ---- */

/* Call @put for each piece of stored data of object @number below @size. */
static int each_piece(const struct image *job, uint32_t number, uint64_t size,
	int (*put)(void *to, uint64_t at, const void *data, size_t size, struct err *e),
	void *to, struct err *e)
{
	cleanup_free char *data = xmalloc((size_t)PIECE_BLOCKS * IMAGE_BLOCK);
	const struct image_extent *x;
	size_t count;

	x = image_extents(job, number, &count);
	for (; count; x++, count--) {
		uint32_t blocks = image_extent_is_stored(x) ? x->blocks : 0, n;

		for (uint32_t first = 0; first < blocks; first += n) {
			uint64_t at = x->address + (uint64_t)first * IMAGE_BLOCK, bytes;

			n = blocks - first < PIECE_BLOCKS ? blocks - first : PIECE_BLOCKS;
			if (at >= size)
				break;
			bytes = (uint64_t)n * IMAGE_BLOCK;
			if (bytes > size - at)
				bytes = size - at;
			if (image_read_blocks(job, x, first, n, data, e) ||
				put(to, at, data, bytes, e))
				return -1;
		}
	}
	return 0;
}

/* A file that is being filled. */
struct filling {
	int fd;
	unsigned huge; /* fd_huge_shift() of it */
};

static int put_file(void *to, uint64_t at, const void *data, size_t size, struct err *e)
{
	const struct filling *f = to;

	return f->huge ? fd_huge_put(f->fd, f->huge, at, data, size, e)
		       : pwrite_all(f->fd, data, size, at, "a restored file", e);
}

static int put_memory(void *to, uint64_t at, const void *data, size_t size, struct err *e)
{
	memcpy((char *)to + at, data, size);
	return 0;
}

int fd_contents(
	const struct image *job, uint32_t number, uint64_t size, void *to, struct err *e)
{
	return each_piece(job, number, size, put_memory, to, e);
}

int fd_contents_to_file(
	const struct image *job, uint32_t number, uint64_t size, int fd, struct err *e)
{
	struct filling f = {.fd = fd, .huge = fd_huge_shift(fd)};

	if (ftruncate(fd, size))
		return err_set(e, errno, "cannot set the size of a file");
	return each_piece(job, number, size, put_file, &f, e);
}

int fd_object_contents(
	struct fd_restore *r, uint32_t number, uint64_t size, struct buf *out, struct err *e)
{
	return fd_contents(r->job, number, size, buf_grow(out, size), e);
}

/* ---- files that are memory, or without a name ---- */

int fd_make_memfd(const struct image *job, const struct image_object *o, struct err *e)
{
	const char *name = image_string(job, o->name);
	static const char prefix[] = "/memfd:";
	bool noexec = o->args[0] & F_SEAL_EXEC && !(o->mode & 0111);
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd;

	if (o->flags)
		flags |= MFD_HUGETLB | o->flags << MFD_HUGE_SHIFT;
	if (o->kind == IMAGE_OBJECT_SHARED_ANON)
		name = "shared";
	else if (!strncmp(name, prefix, sizeof(prefix) - 1))
		name += sizeof(prefix) - 1;
	fd = memfd_create(name, flags | (noexec ? MFD_NOEXEC_SEAL : MFD_EXEC));
	/* vm.memfd_noexec forbids executable ones; before 6.3 there was neither flag. */
	if (fd < 0 && errno == EACCES && !(o->mode & 0111))
		fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	if (fd < 0 && o->flags)
		err_set(e, errno, "cannot create memfd %s in huge pages of %llu KiB", name,
			(1ull << o->flags) / 1024);
	else if (fd < 0)
		err_set(e, errno, "cannot create memfd %s", name);
	return fd;
}

int fd_create_unlinked(const char *dir)
{
	cleanup_free char *path = xasprintf("%s/.trecr-XXXXXX", *dir ? dir : "/");
	int fd = open(*dir ? dir : "/", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	/* Not all file systems can make files without a name. */
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0 && unlink(path)) {
		close(fd);
		return -1;
	}
	return fd;
}

int fd_make_unlinked(const struct image *job, const struct image_object *o, struct err *e)
{
	const char *name = image_string(job, o->name), *slash = strrchr(name, '/');
	int fd = -1;

	if (fd_window_is_shared(name))
		return fd_window_open(name, (uid_t)o->args[1], e);
	if (slash) {
		cleanup_free char *dir = xasprintf("%.*s", (int)(slash + 1 - name), name);
		cleanup_fd int in = fd_open_trusted(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		cleanup_free char *link = xasprintf("/proc/self/fd/%d", in);

		fd = in < 0 ? -1 : fd_create_unlinked(link);
	}
	if (fd >= 0 && fd_huge_shift(fd) != o->flags) {
		close(fd);
		fd = -1;
	}
	if (o->flags)
		return fd >= 0 ? fd : fd_make_memfd(job, o, e);
	if (fd < 0)
		fd = fd_create_unlinked(temporary_directory());
	if (fd < 0)
		err_set(e, errno, "cannot create a file for the unlinked %s", name);
	return fd;
}

int fd_make_shm_file(const struct image *job, const struct image_object *o, struct err *e)
{
	return fd_shm_file_open(job, image_string(job, o->name), o->args[1], e);
}

static int make_one(struct fd_restore *r, uint32_t number, struct fd_made *made, struct err *e)
{
	const struct image_object *o = &r->objects[number - 1];
	const struct object_kind *kind = object_kind_of(o->kind);
	const char *name = image_string(r->job, o->name);
	struct filling f;
	int fd;

	if (!kind->make || o->flags >= 63)
		return err_set(e, 0, "the image is damaged: object %u is no file", number);
	fd = kind->make(r->job, o, e);
	if (fd >= 0)
		fd = fd_lift(r, fd, e);
	if (fd < 0)
		return -1;
	made->fd = fd;
	f = (struct filling){.fd = fd, .huge = fd_huge_shift(fd)};
	/* The umask may be the program's already, and we are going to open it again. */
	if (fchmod(fd, 0600) || ftruncate(fd, o->size))
		return limit_err(
			e, errno, SYS_pwrite64, "cannot set the size of a file for %s", name);
	return each_piece(r->job, number, o->size, put_file, &f, e)
		       ? err_prefix(e, "cannot restore the contents of %s", name)
		       : 0;
}

struct fd_made *fd_made_get(struct fd_restore *r, uint32_t number, struct err *e)
{
	struct fd_made *made;

	if (!number || number > r->object_count) {
		err_set(e, 0, "the image is damaged: there is no object %u", number);
		return NULL;
	}
	made = &r->made[number - 1];
	if (made->fd < 0 && make_one(r, number, made, e))
		return NULL;
	return made;
}

bool fd_maps_writable(const struct image *process, uint32_t number)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(process, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if (g[i].kind == IMAGE_REGION_SHARED && g[i].object == number &&
			g[i].max_prot & PROT_WRITE)
			return true;
	return false;
}

bool fd_seals_after_mapping(
	const struct image *job, const struct image *process, uint32_t number)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	if (!number || number > count || o[number - 1].kind != IMAGE_OBJECT_MEMFD ||
		!(o[number - 1].args[0] & F_SEAL_FUTURE_WRITE))
		return false;
	return fd_maps_writable(process, number);
}

static bool is_sealed_later(const struct fd_restore *r, uint32_t number)
{
	for (size_t i = 0; i < r->checkpoint->process_count; i++)
		if (fd_seals_after_mapping(r->job, r->checkpoint->processes[i], number))
			return true;
	return false;
}

static int finish_object(struct fd_restore *r, uint32_t number, int fd, struct err *e)
{
	const struct image_object *o = &r->objects[number - 1];
	const struct object_kind *kind = object_kind_of(o->kind);
	const char *name = image_string(r->job, o->name);

	if (!kind->has_mode)
		return 0;
	/* Another's file can stay ours: a process that has it open does not need its owner, and
	 * only root could give it away. */
	if (kind->has_owner)
		(void)!fchown(fd, (uid_t)o->args[1], (gid_t)(o->args[1] >> 32));
	fd_attributes_restore_extended(r->job, number, fd);
	if (fchmod(fd, o->mode & 07777))
		return err_set(e, errno, "cannot set the mode of %s", name);
	fd_attributes_restore(r->job, number, fd);
	if (o->kind == IMAGE_OBJECT_MEMFD && o->args[0] && !is_sealed_later(r, number) &&
		fcntl(fd, F_ADD_SEALS, (int)o->args[0]))
		return err_set(e, errno, "cannot seal memfd %s", name);
	return 0;
}

/* A pipe or socket has an owner and a mode as well: they are checked when one is
 * opened again, as by /dev/stdin. Another's can stay ours here, too. */
static int set_owner_and_mode(const struct fd_restore *r, uint32_t description, struct err *e)
{
	const struct image_description *x = &r->descriptions[description];
	const struct fd_kind *kind = r->kinds[description];
	const struct image_object *o;
	int fd = r->open[description];

	if (!kind || !kind->owned_object)
		return 0;
	o = fd_object_info(r->job, x->object, kind->owned_object, e);
	if (!o)
		return -1;
	(void)!fchown(fd, (uid_t)x->args[1], (gid_t)(x->args[1] >> 32));
	return fchmod(fd, o->mode & 07777)
		       ? err_set(e, errno, "cannot set the mode of a pipe or socket")
		       : 0;
}

int fd_made_finish(struct fd_restore *r, struct err *e)
{
	for (uint32_t n = 1; n <= r->object_count; n++) {
		struct fd_made *made = &r->made[n - 1];

		if (made->fd >= 0 && finish_object(r, n, made->fd, e))
			return -1;
		/* Its descriptions were made by opening it again. */
		if (r->objects[n - 1].kind == IMAGE_OBJECT_UNLINKED && !made->mapped) {
			util_close(&made->fd);
			made->fd = -1;
		}
	}
	return 0;
}

int fd_owners_finish(struct fd_restore *r, struct err *e)
{
	for (size_t i = 0; i < r->description_count; i++)
		if (set_owner_and_mode(r, i, e))
			return -1;
	return 0;
}
