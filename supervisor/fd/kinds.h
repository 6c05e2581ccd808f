/*
 * fd/kinds.h - the kinds of open files, a row each: how one is recognised, saved, checked,
 * made again and shown. A new kind is a value in enum image_description_kind, a row in
 * descriptors/kind_table.c, and its functions.
 */
#ifndef SUPERVISOR_FD_KINDS_H
#define SUPERVISOR_FD_KINDS_H

#include <sys/resource.h>

#include "supervisor/fd/descriptor_source.h"
#include "supervisor/fd/fd.h"

struct fd_check;

struct fd_kind {
	uint32_t kind; /* enum image_description_kind */
	const char *name;
	bool can_lock; /* args[0] is a string of the locks held (fd/file_locks.h) */
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
	/* What has to wait until all descriptors are at their numbers: @fd is one that leads to
	 * @x, once for each description; NULL: nothing. */
	int (*finish)(const struct fd_restore *r, const struct image_description *x, int fd,
		struct err *e);
};

/* The row whose match() says yes, or NULL: then fd_unsupported() has the reason. */
const struct fd_kind *fd_kind_match(const struct fd_dump *d, const struct fd_source *s);
/* The row of @kind; NULL for a number that is none. */
const struct fd_kind *fd_kind_find(uint32_t kind);

/* Say in @e why @s cannot be saved; returns -1. */
int fd_unsupported(const struct fd_source *s, struct err *e);

/* ---- saving ---- */

/* The description that @fd of our own leads to, which came in a message that waits in one of
 * the program's sockets; @fd is taken over. An error says what it leads to. */
int fd_dump_received(struct fd_dump *d, int fd, uint32_t *description, struct err *e);

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
	enum fd_tcp tcp;
	struct buf sockets; /* struct socket_dump: socket/sockets_dump.h */
	struct connection_block
		*block;          /* of connections that are kept: socket/connection_block.h */
	struct buf received;     /* int: descriptors from messages that are open nowhere else */
	struct buf epolls;       /* struct fd_epoll: fd/epoll_dump.c */
	const struct tree *tree; /* NULL: unknown */
	struct buf pids;         /* pid_t of the processes saved */
	struct buf queues;       /* struct queue: fd/inotify.c */
	struct buf rings;        /* struct uring_seen: uring/uring.h */
	uint32_t tables;         /* of descriptors, seen so far */
	uint64_t most_duplicates; /* numbers in one of them that lead where a lower one does */
	uint64_t in_threads;      /* numbers that threads have in tables of their own */
	uint64_t save_files;      /* contents of files up to this size; 0: of none */
	bool goes_on;             /* the program, behind the checkpoint */
};

/* A description, and what is not known or not final before the end. */
struct fd_described {
	struct image_description x;
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
	size_t process;   /* the one that fd_restore_process() is for, */
	pid_t pid;        /* and its id */
	bool for_another; /* which is not the calling process: fd_restore_for_another() */
	const struct image_description *descriptions;
	size_t description_count;
	const struct image_object *objects;
	size_t object_count;
	const struct image_fd *fds; /* the process's */
	size_t fd_count;
	struct buf ended;               /* struct ended: fd/pidfd.c */
	struct buf fired;               /* struct fired: descriptors/epoll_restore.c */
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

/* ---- rows' functions, by file ---- */

#define FD_ROW(name)                                                                           \
	bool name##_match(const struct fd_dump *, const struct fd_source *);                   \
	int name##_dump(struct fd_dump *, const struct fd_source *,                            \
		struct image_description *, struct err *);                                     \
	int name##_check(                                                                      \
		const struct fd_check *, const struct image_description *, struct err *);      \
	int name##_restore(                                                                    \
		struct fd_restore *, const struct image_description *, struct err *);          \
	void name##_show(const struct image *, const struct image_description *, struct buf *)

FD_ROW(fd_regular);
FD_ROW(fd_unlinked);
FD_ROW(fd_directory);
FD_ROW(fd_removed);
FD_ROW(fd_device);
FD_ROW(fd_path);
FD_ROW(fd_inherited);
FD_ROW(fd_memfd);
FD_ROW(fd_pipe);
FD_ROW(fd_fifo);
FD_ROW(fd_unlinked_fifo);
/* End @fd of a pipe that is not ready for anything becomes so; and is as it was (see
 * descriptors/epoll_restore.c). */
int fd_pipe_provoke(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t *state);
int fd_pipe_calm(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t state);
FD_ROW(fd_pty_master);
FD_ROW(fd_pty_slave);
FD_ROW(fd_mqueue);
FD_ROW(fd_inotify);
/* Behind all that may be refused: the events are taken out of the queues; if the program goes
 * on it is told that they were lost. */
int fd_inotifies_take(struct fd_dump *d, struct err *e);
void fd_inotifies_free(struct fd_dump *d, bool goes_on);
/* When all queues are made: what they watch. */
int fd_inotifies_watch(struct fd_restore *r, struct err *e);
/* An empty queue gets an event; and loses it. */
int fd_inotify_provoke(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t *state);
int fd_inotify_calm(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t state);
FD_ROW(fd_fanotify);
FD_ROW(fd_pidfd);
int fd_pidfd_finish(
	const struct fd_restore *r, const struct image_description *x, int fd, struct err *e);
/* When all descriptions are made: nothing is left of what stood for processes that have ended.
 */
void fd_pidfds_settle(struct fd_restore *r);
/* In the process, when all are there: put descriptors that lead to the right processes in
 * place. */
int fd_pidfd_place(const struct fd_restore *r, struct err *e);
FD_ROW(fd_process_file);
int fd_process_file_finish(
	const struct fd_restore *r, const struct image_description *x, int fd, struct err *e);
FD_ROW(fd_ended_file);
FD_ROW(fd_namespace);
FD_ROW(fd_eventfd);
FD_ROW(fd_timerfd);
FD_ROW(fd_signalfd);
FD_ROW(fd_epoll);
int fd_pty_check(const struct fd_check *, const struct image_description *, struct err *);
FD_ROW(fd_socket);
FD_ROW(fd_uring);

#endif
