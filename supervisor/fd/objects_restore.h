/*
 * fd/objects_restore.h - at a restart: the objects that open files and shared mappings lead to,
 * made again with their contents.
 */
#ifndef SUPERVISOR_FD_OBJECTS_RESTORE_H
#define SUPERVISOR_FD_OBJECTS_RESTORE_H

#include "supervisor/fd/fd.h"

/* Object @number of the image, which must be there and of @kind; NULL with @e filled. */
const struct image_object *fd_object_info(
	const struct image *job, uint32_t number, enum image_object_kind kind, struct err *e);

/* Object @number, made (with its contents) when it has not been yet; NULL on failure. Modes
 * and seals come with fd_made_finish(). Not for pipes. */
struct fd_made *fd_made_get(struct fd_restore *r, uint32_t number, struct err *e);

/* A new file without a name in directory @dir, "" for the root; -1 with errno set. */
int fd_create_unlinked(const char *dir);

/* An empty file for object @o, by its kind (object_kinds.h); -1. Its mode and its size are not set. */
int fd_make_memfd(const struct image *job, const struct image_object *o, struct err *e);
int fd_make_unlinked(const struct image *job, const struct image_object *o, struct err *e);
int fd_make_shm_file(const struct image *job, const struct image_object *o, struct err *e);

/* Read @size bytes of the contents of object @number into @to, which is to be zeros. */
int fd_contents(
	const struct image *job, uint32_t number, uint64_t size, void *to, struct err *e);

/* The same into a file, which is made @size bytes long. */
int fd_contents_to_file(
	const struct image *job, uint32_t number, uint64_t size, int fd, struct err *e);

/* Append @size bytes of the contents of object @number to @out. */
int fd_object_contents(
	struct fd_restore *r, uint32_t number, uint64_t size, struct buf *out, struct err *e);

/* Give all objects their final modes and seals, when nothing has to be opened any more; files without
 * a name that are not mapped are kept by descriptions alone then. */
int fd_made_finish(struct fd_restore *r, struct err *e);

/* Pipes and sockets get theirs. */
int fd_owners_finish(struct fd_restore *r, struct err *e);

/* Whether @process maps object @number shared, and can write to it, or could after mprotect(2). */
bool fd_maps_writable(const struct image *process, uint32_t number);

/* Whether object @number, sealed with F_SEAL_FUTURE_WRITE, is mapped to be written to by @process
 * all the same, which was there before the seal: what it is sealed with then waits for the mapping. */
bool fd_seals_after_mapping(
	const struct image *job, const struct image *process, uint32_t number);

#endif
