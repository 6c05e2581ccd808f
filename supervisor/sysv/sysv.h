/*
 * sysv.h - System V shared memory, semaphores and message queues of a tree.
 *
 * They belong to nobody but an IPC namespace. A segment is the tree's when a process of the
 * tree has attached it; anything, when a process of the tree was the last to use it, or waits
 * at it, or its end does something to it (SEM_UNDO). Where all who used it have ended, or
 * nobody has used it yet, and it is of the tree's user and younger than the tree, that cannot
 * be known: it stays where it is and is not saved, which is said. Contents, key, owner and id
 * are kept.
 */
#ifndef SUPERVISOR_SYSV_SYSV_H
#define SUPERVISOR_SYSV_SYSV_H

#include "lib/procfs.h"
#include "supervisor/fd/fd.h"
#include "supervisor/target/process.h"

/* Bytes that segment @o takes where it is attached: whole pages, all of which the program can
 * use. */
static inline uint64_t sysv_mapped_size(const struct image_object *o)
{
	return align_up(o->size, o->args[1] ? 1ull << o->args[1] : IMAGE_BLOCK);
}

/* ---- checkpoint ---- */

/* Whether a mapping is one, by its name in /proc/PID/maps. */
bool sysv_is_segment(const struct vma *v);

/* Number of the object that is the segment mapped at @v by @p; it is added when new.
 * *need_memory when its contents are to be taken from this mapping. -1 on failure. */
int sysv_dump_mapping(struct fd_dump *d, struct process *p, const struct vma *v,
	bool *need_memory, struct err *e);

/* The segment mapped at @v is the lower half's, and not saved. */
void sysv_leave_out(struct fd_dump *d, const struct vma *v);

/* All the others, after the memory of all processes. Refuses segments that others have
 * attached, too. */
int sysv_dump_rest(struct fd_dump *d, const struct tree *tree, struct err *e);

/* ---- restart ---- */

bool sysv_has_objects(const struct checkpoint *c);

/* Why the ids of @c cannot be had in this IPC namespace, the caller's to free; NULL: they can,
 * or there are none. An object that is there still and that nobody uses is taken over. */
char *sysv_obstacle(const struct checkpoint *c);

/* Whether @process, of the image, has attached the segment that is object @number. */
bool sysv_attaches(const struct image *process, uint32_t number);

/* In the first process, before it forks: make them. With the contents, but not yet removed. */
int sysv_restore(struct fd_restore *r, struct err *e);

/* Objects of @c that are not here, or with @left_over objects that are and that nobody uses: added
 * to @list (struct image_object). */
void sysv_list(const struct checkpoint *c, bool left_over, struct buf *list);

/* Remove them: what a restart has made that failed, or has made anew in another namespace. */
void sysv_remove(const struct buf *list);

#endif
