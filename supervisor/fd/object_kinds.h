/*
 * fd/object_kinds.h - the kinds of objects that open files and mappings lead to (enum
 * image_object_kind): what is true of all objects of a kind, a row each.
 *
 * How to add a kind: a value at the end of enum image_object_kind (ckpt/image_objects.h), a row in
 * object_kinds.c, its name in tools/inspect/names.c and in man/trecr-image.5. What fills and
 * makes it is with the kind of descriptor that leads to it, unless it is a file (make).
 */
#ifndef SUPERVISOR_FD_OBJECT_KINDS_H
#define SUPERVISOR_FD_OBJECT_KINDS_H

#include "ckpt/image.h"
#include "supervisor/fd/objects_dump.h"

struct object_kind {
	/* It is known by its device and inode. Objects of other kinds have numbers of their own
	 * there, or none. */
	bool by_inode;
	/* It is bytes on their way, and no file. */
	bool is_bytes;
	/* It has a mode that is put back when all is made; an owner in args[1], too; and times
	 * and extended attributes, which are saved where a file leads to it. */
	bool has_mode, has_owner, has_attributes;

	/* How many descriptors a restart makes it with; optional: whether @o takes one more. */
	unsigned descriptors;
	bool (*takes_another)(const struct fd_object *o);

	/* Optional: at a restart, an empty file for it; -1. NULL: it is no file, or made by what is
	 * of its kind only. */
	int (*make)(const struct image *job, const struct image_object *o, struct err *e);
};

/* The row of @kind; of a kind that there is not, a row of nothing. */
const struct object_kind *object_kind_of(uint32_t kind);

#endif
