/*
 * fd/objects_dump.h - what open files and shared mappings lead to that has no name in any file
 * system: memfds, unlinked files, anonymous shared memory, pipes. At a checkpoint.
 */
#ifndef SUPERVISOR_FD_OBJECTS_DUMP_H
#define SUPERVISOR_FD_OBJECTS_DUMP_H

#include "supervisor/fd/fd.h"

struct fd_object {
	struct image_object o;
	char *text;      /* the descriptor or mapping it was found by, for messages */
	char *link;      /* as /proc shows descriptors that lead to it */
	char *file;      /* path in /proc that opens it; NULL: only memory leads to it */
	pid_t pid, task; /* and the descriptor to get instead where that is not allowed */
	int fd;          /* -1: none */
	dev_t file_dev;  /* which file @file is to name when it is read, */
	ino_t file_ino;  /* 0: whatever has that name */
	bool have_bytes; /* of a pipe */
	struct buf bytes;
	unsigned long attached; /* of a System V segment: the kernel's count of mappings, */
	unsigned long seen;     /* how many have been seen */
	bool stored;            /* and one of them has its contents */
	struct buf mapped;      /* of an object that only mappings lead to: struct fd_mapped */
	bool reordered;         /* its pages are in another order (hidden_pages.h), */
	bool size_known;        /* or a mapping shows its end */
	struct fd_pty *pty;     /* of a pseudo-terminal: fd_kinds/pty.h, */
	bool is_mapped;         /* in shared or private mappings: */
	bool is_mapped_to_read; /* some mapping can never be written to, */
	bool is_mapped_private; /* some mapping is private */
	bool has_part;          /* this image is to have a part of it only (shared_window.h): */
	uint64_t part_from, part_to;
	dev_t devpts; /* and the file system its slave is in; 0: not known */
};

/* A mapping: from @start on @process has bytes @from to @to, which can be read. */
struct fd_mapped {
	struct process *process;
	uint64_t start, from, to;
};

/* Number (from 1) of the object that is file @dev:@inode, 0 when there is none yet. */
uint32_t fd_object_find(const struct fd_dump *d, uint64_t dev, uint64_t inode);

/* The same for objects of a @kind that has numbers instead: terminals and System V objects. */
uint32_t fd_object_numbered(
	const struct fd_dump *d, enum image_object_kind kind, uint64_t number);

/* The same for a file that is known by its name @name (FILE). */
uint32_t fd_object_named(const struct fd_dump *d, uint32_t name);

/* The object numbered @number, valid until the next one is added. */
struct fd_object *fd_object_at(const struct fd_dump *d, uint32_t number);

/* The object behind @s, of @kind, adding it when new: its number. */
uint32_t fd_object_of(
	struct fd_dump *d, const struct fd_source *s, enum image_object_kind kind);

/* What an object that has not been added holds. */
void fd_object_free(struct fd_object *o);

/* Add @o, whose strings it takes over, and return its number. */
uint32_t fd_object_add(struct fd_dump *d, const struct fd_object *o);

/* What @o->file names, to be read; the caller's. A file in memory that has a name is read
 * whatever its mode is by now (reopen_despite_mode.h). -1 and errno on failure. */
int fd_object_open(const struct fd_object *o);

/* Save contents and the note; the processes are still stopped. */
int fd_objects_write(struct fd_dump *d, struct err *e);
void fd_objects_free(struct fd_dump *d);

#endif
