/*
 * fd/fd.h - what a checkpoint (struct fd_dump) and a restart (struct fd_restore) know of all open
 * files, and what a kind of open file is (struct fd_kind): how one is recognised, saved, checked,
 * made again and shown. What a new kind takes is in doc/adding-kernel-state.md.
 */
#ifndef SUPERVISOR_FD_FD_H
#define SUPERVISOR_FD_FD_H

#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "ckpt/image_read.h"
#include "ckpt/image_write.h"
#include "ckpt/store.h"
#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/fd/descriptor_source.h"
#include "supervisor/fd/fd_options.h"

struct fd_check;
struct fd_dump;
struct fd_object;
struct fd_restore;
struct remote;
struct tree;

/* What code that goes through all descriptors has to know of a kind. */
enum fd_trait {
	/* args[0] is a string of the locks held (fd/file_locks.h) */
	FD_CAN_LOCK = 1,
	/* known by its number elsewhere as well: `restore` makes it where it stays, and it is not
	 * moved */
	FD_IN_PLACE = 2,
	/* leads to a process or thread: each process that has it opens its own, when all are there */
	FD_OF_TASK = 4,
	/* has an event when it is new, or can be given one (`provoke`): a one-shot watch of
	 * epoll(7) that has fired can be let fire again */
	FD_FIRES = 8,
	/* its events are those of the process that watches it */
	FD_OWN_EVENTS = 16,
	/* the launcher's: others may use it as well, and after a restart it may be another file, with
	 * other events */
	FD_FROM_LAUNCHER = 32,
};

/* When it is made, for a restart. */
enum fd_stage {
	FD_BESIDE_OTHERS,
	/* before all that it may watch */
	FD_FIRST,
	/* behind these: it watches files, must not see how others are opened, and finds files that
	 * have no name */
	FD_LATE,
	/* the same, and its watches are there as soon as it is made */
	FD_LAST,
};
#define FD_STAGES 4

struct fd_kind {
	uint32_t kind; /* enum image_description_kind */
	const char *name;
	unsigned traits; /* of enum fd_trait */
	enum fd_stage stage;
	/* enum image_object_kind of an object that has an owner and a mode, but no name: they are set
	 * when all is made, to args[1] and the object's mode. 0: it has none. */
	uint32_t owned_object;
	bool (*match)(const struct fd_dump *d, const struct fd_source *s);
	/* Fill what is not filled for all kinds alike. An error is the reason only: the caller
	 * says of which descriptor. */
	int (*dump)(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
		struct err *e);
	/* Whether it can be made again, before anything is made; NULL: nothing to check. */
	int (*check)(
		const struct fd_check *c, const struct image_description *x, struct err *e);
	/* Make it: returns a descriptor at or above r->base, or -1. Status flags and owner are
	 * set by the caller. */
	int (*restore)(struct fd_restore *r, const struct image_description *x, struct err *e);
	void (*show)(
		const struct image *job, const struct image_description *x, struct buf *out);
	/* Which of the descriptors that its object @o is made with @x becomes, if no other
	 * description has: a bit each of fd_made.taken, as `restore` decides. NULL: none. */
	unsigned (*takes)(const struct image_description *x, const struct fd_object *o);
	/* Mark the descriptions that @x needs in the process that restores it, beside its own numbers.
	 * NULL: none. */
	void (*needs)(
		const struct fd_restore *r, const struct image_description *x, bool *needed);
	/* FD_OF_TASK, unless NULL: whether @x can only be opened when all threads are there; a
	 * stand-in has its number until then. And open it then: in *opened the descriptor, by
	 * system calls of the process that @remote is in, which has a page at @scratch. */
	bool (*needs_threads)(const struct image_description *x);
	int (*open_remotely)(struct remote *remote, uint64_t scratch, const struct image *job,
		const struct image_description *x, int64_t *opened, struct err *e);
	/* FD_FIRES, unless NULL: @fd, which has no event, has one between these two; *state is
	 * passed on. -1 and errno. */
	int (*provoke)(struct fd_restore *r, const struct image_description *x, int fd,
		int64_t *state);
	int (*calm)(
		struct fd_restore *r, const struct image_description *x, int fd, int64_t state);
};

/* The functions of a row. */
#define FD_ROW(name)                                                                           \
	bool name##_match(const struct fd_dump *, const struct fd_source *);                   \
	int name##_dump(struct fd_dump *, const struct fd_source *,                            \
		struct image_description *, struct err *);                                     \
	int name##_check(                                                                      \
		const struct fd_check *, const struct image_description *, struct err *);      \
	int name##_restore(                                                                    \
		struct fd_restore *, const struct image_description *, struct err *);          \
	void name##_show(const struct image *, const struct image_description *, struct buf *)
#define FD_EVENT(name)                                                                         \
	int name##_provoke(                                                                    \
		struct fd_restore *, const struct image_description *, int, int64_t *);        \
	int name##_calm(struct fd_restore *, const struct image_description *, int, int64_t)
#define FD_LATE(name)                                                                          \
	bool name##_needs_threads(const struct image_description *);                           \
	int name##_open_remotely(struct remote *, uint64_t, const struct image *,              \
		const struct image_description *, int64_t *, struct err *)

/* ---- saving ---- */

/* One descriptor for each description, in the order of file and, where that is the same
 * (all of one's own pipes, files opened twice, anything anonymous), of kcmp(2). */
struct fd_known {
	uint64_t dev, inode;
	pid_t task;
	int fd;
	uint32_t description;
};

/* A standard stream of the supervisor that is a terminal, pipe or socket. */
struct fd_stream {
	bool usable;
	struct stat st;
	int access;        /* O_RDONLY, O_WRONLY, O_RDWR */
	uint64_t terminal; /* its device number; 0: it is none */
};

struct fd_dump {
	struct image_writer *job;
	struct fd_stream streams[3];
	uint64_t terminal; /* the controlling terminal, whatever the streams are; 0: none */
	struct fd_known
		inherited_of[3]; /* where each was seen first: they are not in `known` */
	uint32_t inherited[3];   /* number (from 1) of the description of each stream */
	dev_t memory_device;     /* of memfds and anonymous shared memory */
	struct buf known;        /* struct fd_known, ordered */
	struct buf descriptions; /* struct fd_described */
	struct buf objects;      /* struct fd_object: fd/objects_dump.h */
	uint32_t *named; /* numbers of objects that are known by name (FILE): a hash table */
	size_t named_slots, named_count;
	uint32_t *by_inode; /* all others in another, those of one inode in their order */
	size_t inode_slots;
	struct buf lowers; /* uint64_t: segments of System V that the lower half has attached */
	enum fd_tcp tcp;
	struct buf sockets; /* struct socket_dump: socket/sockets_dump.h */
	struct connection_block
		*block; /* of connections that are kept: socket/connection_block.h */
	/* Descriptors in messages that wait in the program's sockets. Finds the description that
	 * @fd of our own leads to, which came in one; @fd is taken over. An error says what it
	 * leads to. */
	int (*find_received)(struct fd_dump *d, int fd, uint32_t *description, struct err *e);
	struct buf received;     /* int: descriptors that are open nowhere else */
	struct buf epolls;       /* struct fd_epoll: fd_kinds/epoll_dump.c */
	const struct tree *tree; /* NULL: unknown */
	struct buf pids;         /* pid_t of the processes saved */
	struct buf queues;       /* struct queue: fd_kinds/inotify.c */
	struct buf rings;        /* struct uring_seen: uring/uring.h */
	struct buf shared_files; /* struct fd_mapped_file: fd/shared_mapping.c */
	bool knows_shared_files;
	uint32_t tables;          /* of descriptors, seen so far */
	uint64_t most_duplicates; /* numbers in one of them that lead where a lower one does */
	uint64_t in_threads;      /* numbers that threads have in tables of their own */
	uint64_t save_files;      /* contents of files up to this size; 0: of none */
	const char *save_directories; /* whose files are saved: strings_next(); NULL: none */
	struct buf sets; /* uint32_t: numbers of objects that are such directories, or were */
	uint64_t temporary_bytes; /* of files that are saved in case that they are missing */
	bool program_resumes;     /* after the checkpoint */
	int job_rank; /* in the job whose members are saved together; -1: by itself */
	bool looked_for_aio, has_aio; /* fd_kinds/eventfd_timerfd_signalfd.c */
};

/* A description, and what is not known or not final before the end. */
struct fd_described {
	struct image_description x;
	const struct fd_kind *kind;
	char *locks;
	pid_t locks_of; /* process whose locks were added last */
	uint32_t table; /* number (from 1) of the table of descriptors that it was seen in last
			 */
};

/* ---- restart ---- */

struct fd_check {
	const struct checkpoint *checkpoint;
	const struct image *job;
	const struct fd_restore_options *options;
	void (*notice)(const char *line);
	uint32_t index; /* of the description */
	int fd;         /* the first descriptor that leads to it, for messages */
};

/* Fills @e for @path, which could not be opened as @as ("descriptor 5"), with errno value @code; what a mode
 * forbids comes with the way out. Returns -1. */
int fd_cannot_open(const char *path, const char *as, int code, struct err *e);

/* Whether @path could be opened with the access that is in @flags. */
int fd_check_access(const struct fd_check *c, const char *path, int flags, struct err *e);

/* What has been made of an object. */
struct fd_made {
	int fd;        /* read-write; of a pipe: the read end; -1: not made yet */
	int first;     /* @fd before any process has moved it */
	int writer;    /* the write end of a pipe, or -1 */
	bool given;    /* the process has got @fd itself, to map and close */
	bool taken[2]; /* ends of a pipe that a description has become */
	bool mapped;   /* a region of the process maps it (at first: of any process): kept for
			* fd_restore_object() */
};

struct fd_restore {
	const struct checkpoint *checkpoint;
	const struct image *job;
	const struct fd_restore_options *options;
	size_t process;   /* that fd_restore_process() is for, */
	pid_t pid;        /* and its id */
	bool for_another; /* which is not the calling process: fd_restore_for_another() */
	const struct image_description *descriptions;
	const struct fd_kind **kinds; /* of the descriptions */
	size_t description_count;
	const struct image_object *objects;
	size_t object_count;
	const struct image_fd *fds; /* the process's */
	size_t fd_count;
	struct buf ended;               /* struct ended: fd_kinds/pidfd.c */
	struct buf fired;               /* struct fired: fd_kinds/epoll_restore.c */
	int *open;                      /* by description: its descriptor, or -1 */
	size_t *holder;                 /* by description: the first process that has it */
	struct fd_made *made;           /* by object */
	struct socket_restore *sockets; /* while they are made: socket/sockets_restore.h */
	int *number; /* by description: where the first process has it, or -1 */
	int streams[3];
	struct rlimit limit; /* to be put back in the end */
	int base;            /* what is temporary is at or above, as long as there is room */
};

/* Move @fd (>= 0, consumed) to a number at or above r->base, close-on-exec. -1 on failure. */
int fd_lift(struct fd_restore *r, int fd, struct err *e);

/* The same to where the first process has description @index, if that number is free: so a
 * restart needs no number for it besides. */
int fd_lift_into(struct fd_restore *r, uint32_t index, int fd, struct err *e);

/* For @index: what is needed by none. */
#define FD_NO_DESCRIPTION UINT32_MAX

/* Open @path as @x was opened; lifted. */
int fd_open_again(struct fd_restore *r, const char *path, const struct image_description *x,
	struct err *e);

/* Open what @fd leads to a second time, with the flags of @x; lifted. */
int fd_open_object(
	struct fd_restore *r, int fd, const struct image_description *x, struct err *e);

/* @fd, at the position that @x had; -1, and @fd closed, where that fails. -1 is passed on. */
int fd_at_position(
	const struct fd_restore *r, int fd, const struct image_description *x, struct err *e);

/* What F_GETFL shows for open(2), but not for pipe(2); glibc's own is 0. */
#define KERNEL_O_LARGEFILE 0100000

#endif
