/*
 * fd/fd.h - what is said of descriptors to code that does not save or restore them itself.
 */
#ifndef SUPERVISOR_FD_FD_H
#define SUPERVISOR_FD_FD_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ckpt/image_read.h"
#include "ckpt/image_write.h"
#include "ckpt/store.h"
#include "lib/err.h"
#include "lib/util.h"

struct process;
struct tree;
struct vma;

/* ---- checkpoint ---- */

/* Descriptors, descriptions and objects of all processes of one checkpoint (fd/kinds.h). */
struct fd_dump;

/* The terminal that @fd leads to, also where it was opened as /dev/tty: its device number; 0:
 * none, or one that was hung up. */
uint64_t fd_terminal_of(int fd);

/* What to do about a TCP connection whose other end is not being saved. */
enum fd_tcp {
	FD_TCP_REFUSE, /* the checkpoint fails */
	FD_TCP_RESET,  /* after a restart it is broken: ECONNRESET */
	FD_TCP_KEEP,   /* it continues after a restart (TCP_REPAIR; a privilege) */
};

/* Number (from 1) of the object behind @v, a shared mapping of @pid; added when it is new.
 * *need_memory is set when the caller must supply the contents from the process's memory,
 * because nothing else leads to it (without CAP_CHECKPOINT_RESTORE: MAP_SHARED | MAP_ANONYMOUS
 * memory, or a memfd or unlinked file whose descriptor was closed). 0 for a file with a name
 * that is no object of ours: one on a disk, or one that is only read; -1 on failure. Called
 * after fd_dump_process() of all processes. */
int fd_dump_mapping(
	struct fd_dump *d, pid_t pid, const struct vma *v, bool *need_memory, struct err *e);

/* To be called next of such an object's mapping, in the process, which is stopped: whether
 * there may be more of it than is mapped (page_order.h). */
int fd_dump_page_order(struct fd_dump *d, struct process *p, const struct vma *v,
	uint32_t object, struct err *e);

/* Number of the object behind @v, a private mapping of a file without a name, of process @pid;
 * 0 where no descriptor of the tree leads to it, nor, of memory, the mapping itself (without
 * CAP_CHECKPOINT_RESTORE). */
uint32_t fd_dump_private_mapping(struct fd_dump *d, pid_t pid, const struct vma *v);

/* By which ways the program has the terminal @device from its launcher:
 * IMAGE_TERMINAL_STREAM() and IMAGE_TERMINAL_OPENED. */
uint32_t fd_dump_ways_to_terminal(const struct fd_dump *d, uint64_t device);

/* Whether pseudo-terminal number @index is one that a descriptor of the tree leads to. */
bool fd_dump_has_terminal(const struct fd_dump *d, int index);

/* Number (from 1) of the object for a directory that has been removed, to which @path of /proc
 * leads and which shows as @link; 0 on failure. */
uint32_t fd_dump_removed(struct fd_dump *d, const char *path, const char *link, struct err *e);

/* ---- restart ---- */

struct fd_restore_options {
	bool alive;           /* the program is there: open nothing that it could notice, and
			       * make what stands for it (trial_stand_in.h) */
	bool files_are_back;  /* those whose contents are in the checkpoint */
	bool rollback_files;  /* move what files gained since into FILE.trecr-tail */
	bool clocks_continue; /* CLOCK_MONOTONIC and CLOCK_BOOTTIME are those of the checkpoint
			       */
	char temporary_name[32]; /* name of directories for a moment; nobody else has it */
	int kept;                /* connections to the outside go there, silent as yet
				    (socket/kept_connections.h) */
};

/* The same, in the new processes (fd/kinds.h). */
struct fd_restore;

/* The code of an error that time mends: of a port that the kernel keeps for a minute from
 * whoever wants it. Nothing else here fails so. */
#define FD_ERROR_WAIT     ETIME
#define FD_ERROR_WAIT_SEC 65

/* A name for them; and when a restart has failed: remove what is left. */
void fd_name_temporary_directories(struct fd_restore_options *o);
void fd_remove_temporary_directories(
	const struct checkpoint *c, const struct fd_restore_options *o);

/* Enter the removed directory that is @object; before fd_restore_process(). */
int fd_restore_directory(const struct fd_restore *r, uint32_t object, struct err *e);

/* A descriptor of pseudo-terminal @index, for the first of a session that it controls; -1:
 * there is none. Until fd_restore_process(). */
int fd_restore_terminal(const struct fd_restore *r, uint32_t index);

/* Number + 1 of a pseudo-terminal of the checkpoint that is in use here, as far as is to be
 * seen; 0: none. Whether it has any. */
uint64_t fd_terminal_in_use(const struct checkpoint *c);
bool fd_has_terminals(const struct checkpoint *c);

#endif
