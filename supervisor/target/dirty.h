/*
 * target/dirty.h - which pages of a process have been written to since a checkpoint, as the
 * kernel tells: asynchronous write protection by userfaultfd (kernel 6.7).
 *
 * A process gets a userfaultfd by a system call that is run in it; it is fetched from it and
 * closed there, so that the program has no descriptor of it. Its regions are registered, and
 * its pages protected, from here. A page that is written to, by whomever, loses its protection,
 * and nobody waits for anything. When the supervisor ends, the kernel takes all of this back.
 *
 * In doubt a page has been written to. A region counts as watched only while the kernel says so
 * and it is registered with our own descriptor: what comes anew at its addresses (by mmap(2),
 * mremap(2), fork(2), execve(2)) is not.
 */
#ifndef SUPERVISOR_TARGET_DIRTY_H
#define SUPERVISOR_TARGET_DIRTY_H

#include <stdbool.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/target/process.h"

/* All that a supervisor watches. All zero: nothing. */
struct dirty_list {
	struct buf processes; /* struct dirty * */
};

struct dirty;

/* Watch the frozen process @p, from now on or as before. NULL when that cannot be: then all
 * its memory counts as written to. */
struct dirty *dirty_watch(struct dirty_list *list, struct process *p);

/* Whether the pages were last protected at the checkpoint of that id. */
bool dirty_is_since(const struct dirty *d, const uint8_t checkpoint_id[16]);

/* Whether @v is watched: by us, and ever since its pages were protected. */
bool dirty_watches(const struct dirty *d, const struct vma *v);

/* Watch @v, private anonymous memory, and protect its pages. Whatever goes wrong only means
 * that they count as written to. @pagemap is the process's. */
void dirty_protect(struct dirty *d, int pagemap, const struct vma *v);

/* The pages have been protected for the checkpoint of that id, which is complete. Processes
 * that were not asked for since the last time are forgotten. */
void dirty_complete(struct dirty_list *list, const uint8_t checkpoint_id[16]);
/* There is no such checkpoint: all pages count as written to. */
void dirty_forget(struct dirty_list *list);

/* Watch the process @p no longer. */
void dirty_drop(struct dirty_list *list, const struct process *p);
/* Watch nothing any more: the kernel takes all marks back. */
void dirty_end(struct dirty_list *list);

#endif
