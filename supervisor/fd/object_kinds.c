/*
 * object_kinds.c - the table of the kinds of objects.
 */
#include "supervisor/fd/object_kinds.h"

#include <fcntl.h>

#include "supervisor/fd/objects_restore.h"

/* A memfd is made with one descriptor to write to it by, perhaps with one to map it by. */
static bool memfd_takes_another(const struct fd_object *o)
{
	return o->is_mapped_to_read || (o->is_mapped && o->o.args[0] & F_SEAL_WRITE);
}

static const struct object_kind kinds[IMAGE_OBJECT_KINDS] = {
	[IMAGE_OBJECT_SHARED_ANON] = {.by_inode = true,
		.has_mode = true,
		.descriptors = 1,
		.make = fd_make_memfd},
	[IMAGE_OBJECT_MEMFD] = {.by_inode = true,
		.has_mode = true,
		.has_owner = true,
		.has_attributes = true,
		.descriptors = 1,
		.takes_another = memfd_takes_another,
		.make = fd_make_memfd},
	[IMAGE_OBJECT_UNLINKED] = {.by_inode = true,
		.has_mode = true,
		.has_owner = true,
		.has_attributes = true,
		.descriptors = 1,
		.make = fd_make_unlinked},
	[IMAGE_OBJECT_PIPE] = {.by_inode = true, .is_bytes = true, .descriptors = 2},
	[IMAGE_OBJECT_PTY] = {.is_bytes = true, .descriptors = 2},
	[IMAGE_OBJECT_SOCKET] = {.by_inode = true, .is_bytes = true},
	[IMAGE_OBJECT_SHM] = {.is_bytes = true},
	[IMAGE_OBJECT_SEM] = {.is_bytes = true},
	[IMAGE_OBJECT_MSG] = {.is_bytes = true},
	[IMAGE_OBJECT_MQUEUE] = {.by_inode = true,
		.is_bytes = true,
		.has_mode = true,
		.descriptors = 1},
	[IMAGE_OBJECT_SHM_FILE] = {.by_inode = true,
		.has_mode = true,
		.has_owner = true,
		.descriptors = 1,
		.make = fd_make_shm_file},
	[IMAGE_OBJECT_URING] = {.by_inode = true, .is_bytes = true},
	/* Put back one after the other, before anything is made. */
	[IMAGE_OBJECT_FILE] = {.has_mode = true, .has_attributes = true},
	[IMAGE_OBJECT_DIRECTORY] = {.by_inode = true,
		.has_mode = true,
		.has_owner = true,
		.descriptors = 1},
	[IMAGE_OBJECT_EVENTS] = {.is_bytes = true},
};

const struct object_kind *object_kind_of(uint32_t kind)
{
	static const struct object_kind none;

	return kind < IMAGE_OBJECT_KINDS ? &kinds[kind] : &none;
}
