/*
 * fd/shared_mapping.h - the objects that mappings lead to, at a checkpoint.
 */
#ifndef SUPERVISOR_FD_SHARED_MAPPING_H
#define SUPERVISOR_FD_SHARED_MAPPING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"

struct fd_dump;
struct process;
struct vma;

/* Number (from 1) of the object behind @v, a shared mapping of @pid; added when it is new.
 * *need_memory is set when the caller must supply the contents from the process's memory,
 * because nothing else leads to it (without CAP_CHECKPOINT_RESTORE: MAP_SHARED | MAP_ANONYMOUS
 * memory, or a memfd or unlinked file whose descriptor was closed). 0 for a file with a name
 * that is no object of ours: a file on a disk, or a file that is only read; -1 on failure. Called
 * after fd_dump_process() of all processes. */
int fd_dump_mapping(
	struct fd_dump *d, pid_t pid, const struct vma *v, bool *need_memory, struct err *e);

/* Of such an object's mapping: whether pages of it may not exist, and present_pages() tells. */
bool fd_dump_has_holes(const struct fd_dump *d, const struct vma *v);

/* Which bytes [*from, *to) of such an object this image is to have: the rest is in those of other ranks. */
void fd_dump_part(const struct fd_dump *d, uint32_t object, uint64_t *from, uint64_t *to);

/* To be called next of it: it can be read up to @end. fd_dump_finish() looks for what is mapped
 * nowhere (hidden_pages.h). */
void fd_dump_mapped(struct fd_dump *d, struct process *p, const struct vma *v, uint64_t end,
	uint32_t object);

/* Number of the object behind @v, a private mapping of a file without a name, of process @pid;
 * 0 where nobody can write to the file any more: no descriptor of the tree leads to it, nor a shared
 * mapping; -1 on failure. */
int fd_dump_private_mapping(struct fd_dump *d, pid_t pid, const struct vma *v, struct err *e);

#endif
