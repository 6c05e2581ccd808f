/*
 * image_objects.h - the part of image.h about descriptors, the open file descriptions that they lead to, and the objects
 * behind these and behind shared mappings.
 */
#ifndef CKPT_IMAGE_OBJECTS_H
#define CKPT_IMAGE_OBJECTS_H

#include "ckpt/image.h"

struct image_fd {
	int32_t fd;
	uint32_t cloexec;
	uint32_t description; /* index in IMAGE_NOTE_DESCRIPTIONS */
	uint32_t reserved;
};
IMAGE_SIZE_IS(struct image_fd, 16);

/* A descriptor of a thread that has left the table of its process (unshare(2) with
 * CLONE_FILES); ascending for each thread, which all begin with one of number -1 that stands
 * for none. */
struct image_thread_fd {
	int32_t tid, fd;
	uint32_t cloexec;
	uint32_t description; /* index in IMAGE_NOTE_DESCRIPTIONS */
};
IMAGE_SIZE_IS(struct image_thread_fd, 16);

/* One open file description, shared by the descriptors that name it. Of the kinds marked L
 * args[0] is a string: the locks held, a line each: "FLOCK WRITE 0 EOF 0", that is FLOCK, POSIX
 * or OFDLCK, READ or WRITE, first and last byte, and for POSIX locks the process. */
enum image_description_kind {
	IMAGE_FD_REGULAR =
		1, /* L; size is the file's at the checkpoint; args[1]: the lower half has it */
	IMAGE_FD_DIRECTORY, /* L */
	IMAGE_FD_DEVICE, /* a character device without state (null, zero, ...); args[0]: rdev */
	IMAGE_FD_INHERITED,  /* args[0]: 0, 1 or 2: taken from trecr-restart's; args[1]:
			      * enum image_inherited */
	IMAGE_FD_UNLINKED,   /* L; object: the contents */
	IMAGE_FD_MEMFD,      /* L; object: the contents */
	IMAGE_FD_PIPE,       /* object: the pipe; args[0]: 0 read end, 1 write end, 2 both,
			      * args[1]: uid | gid << 32 */
	IMAGE_FD_FIFO,       /* path; object; args[0] as for a pipe */
	IMAGE_FD_EVENTFD,    /* args[0]: count, args[1]: semaphore, args[2]: id */
	IMAGE_FD_TIMERFD,    /* args[0]: clock, [1]: left ns, [2]: interval ns, [3]: ticks,
			      * [4]: settime flags, [5]: when it expires, on its clock */
	IMAGE_FD_PATH,       /* O_PATH: path; args[0]: type of the file, as in st_mode */
	IMAGE_FD_EPOLL,      /* args[0]: string, a line "FD EVENTS DATA" (decimal, hex, hex) for
			      * each descriptor watched */
	IMAGE_FD_SIGNALFD,   /* args[0]: signal mask */
	IMAGE_FD_PTY_MASTER, /* path of the ptmx; object: the terminal */
	IMAGE_FD_PTY_SLAVE,  /* object: the terminal; args[0]: 1: opened as /dev/tty */
	IMAGE_FD_SOCKET,     /* object: bytes of the messages; args[0]: its number in
			      * IMAGE_NOTE_SOCKETS, from 1, args[1]: uid | gid << 32 */
	IMAGE_FD_MQUEUE,     /* object: the POSIX message queue */
	IMAGE_FD_INOTIFY,    /* args[0]: string, a line "WD MASK PATH" (decimal, hex) for each
			      * watch; args[1]: bytes of events that were not read, [2]: the next
			      * number, 0: not known; object: the events */
	IMAGE_FD_PIDFD,      /* args[0]: the process; 0: it has ended */
	IMAGE_FD_PROCESS_FILE,  /* a file or directory of /proc of one of the processes: path */
	IMAGE_FD_FANOTIFY,      /* args[0]: string, a line "WHERE FLAGS MASK IGNORED PATH" (hex)
				 * for each mark; [1]: flags, [2]: of events, as of
				 * fanotify_init(2) */
	IMAGE_FD_URING,         /* object: the ring */
	IMAGE_FD_UNLINKED_FIFO, /* object, args[0], args[1] as for a pipe */
	IMAGE_FD_REMOVED,       /* L; a directory: path and object */
	IMAGE_FD_ENDED_FILE,    /* a file or directory of /proc of a process or thread that has
				 * ended: path */
	IMAGE_FD_NAMESPACE,     /* of the process itself: path, as below /proc/PID/ns */
	IMAGE_FD_KINDS,
};

enum image_owner {
	IMAGE_OWNER_BY_SIGN,   /* a process, or a negative process group */
	IMAGE_OWNER_THREAD,    /* a single thread: its id */
	IMAGE_OWNER_OUR_GROUP, /* the process group of trecr itself */
};

struct image_description {
	uint32_t kind;  /* enum image_description_kind */
	uint32_t flags; /* open(2) flags of F_GETFL */
	uint64_t position;
	uint64_t size, dev, inode;
	uint64_t mtime_ns;
	uint32_t path;         /* string */
	uint32_t object;       /* index in IMAGE_NOTE_OBJECTS + 1 */
	int32_t owner;         /* F_SETOWN: pid, negative process group */
	uint16_t owner_signal; /* F_SETSIG */
	uint16_t owner_kind;   /* enum image_owner */
	uint64_t args[6];
};
IMAGE_SIZE_IS(struct image_description, 112);

/* Contents that are in no process's private memory, saved once in the job file. The flags of
 * SHARED_ANON, MEMFD and UNLINKED are the logarithm of the size of their pages where those are
 * huge pages of hugetlbfs, else 0. */
enum image_object_kind {
	IMAGE_OBJECT_SHARED_ANON = 1, /* MAP_SHARED | MAP_ANONYMOUS */
	IMAGE_OBJECT_MEMFD,           /* args[0]: seals, args[1]: uid | gid << 32 */
	/* A file without a name: its last one; args[0]: other names, args[1]: uid | gid << 32
	 */
	IMAGE_OBJECT_UNLINKED,
	/* size: bytes in it; args[0]: capacity; args[1]: number of packets, whose lengths
	 * (uint32_t) follow the bytes; 0: a stream of bytes */
	IMAGE_OBJECT_PIPE,
	/* A pseudo-terminal; inode: its number. Contents (of size bytes): struct image_pty */
	IMAGE_OBJECT_PTY,
	IMAGE_OBJECT_SOCKET, /* bytes of all messages that wait to be read, in their order */
	/* System V: inode: id, dev: key, args[0]: uid | gid << 32, flags: IMAGE_SYSV_*; the
	 * mode's further bits are the kernel's (SHM_DEST, SHM_LOCKED) */
	IMAGE_OBJECT_SHM, /* contents; args[1]: as the flags of MEMFD */
	IMAGE_OBJECT_SEM, /* args[1]: number; their values (uint16_t), struct image_sem_undo */
	IMAGE_OBJECT_MSG, /* args[1]: bytes it may hold; struct image_queue_message, each with
			   * its text */
	/* POSIX; flags: whether it has a name, args[0]: uid | gid << 32, args[1]: messages at
	 * most | bytes of one << 32; struct image_queue_message (type: priority), each with its
	 * text */
	IMAGE_OBJECT_MQUEUE,
	/* A file of a tmpfs that is mapped shared: POSIX shared memory;
	 * args[1]: uid | gid << 32 */
	IMAGE_OBJECT_SHM_FILE,
	IMAGE_OBJECT_URING, /* struct image_ring, and what it says */
	/* A file with a name, as it was; flags: IMAGE_FILE_*, args[0]: when it was changed
	 * (nanoseconds), args[1]: uid | gid << 32 */
	IMAGE_OBJECT_FILE,
	/* A directory that has been removed; args[0]: the object that its ".." leads to, 0:
	 * that has not been removed, args[1]: uid | gid << 32 */
	IMAGE_OBJECT_DIRECTORY,
	IMAGE_OBJECT_EVENTS, /* of inotify: struct inotify_event, each with its name */
	IMAGE_OBJECT_KINDS,
};

struct image_object {
	uint32_t kind;
	uint32_t name; /* string */
	uint64_t size; /* bytes */
	uint64_t dev, inode;
	uint32_t mode, flags;
	uint64_t args[2];
};
IMAGE_SIZE_IS(struct image_object, 56);

/* What else an object has that a restart makes anew: flags are FS_*_FL of <linux/fs.h>, the hint is
 * a value of F_SET_RW_HINT. An extended attribute may be of a file with a name, too. */
struct image_file_attributes {
	uint32_t object, inode_flags, write_hint, reserved;
	int64_t atime_ns, mtime_ns;
};
IMAGE_SIZE_IS(struct image_file_attributes, 32);

struct image_xattr {
	uint32_t object, name /* string */, size, reserved;
};
IMAGE_SIZE_IS(struct image_xattr, 16);

/*
 * An io_uring; its SQEs, CQEs and array of indices (without IORING_SETUP_NO_SQARRAY), of all
 * entries, follow, and to the end a line for each thing that is registered with it, and for
 * each completion that has found no room:
 *
 *	files COUNT		file SLOT FD
 *	buffers COUNT		buffer SLOT ADDRESS SIZE	(hexadecimal)
 *	eventfd FD		ring TID SLOT
 *	overflow USER_DATA RESULT FLAGS				(hexadecimal)
 *	attach FD		it shares the thread of the ring FD
 *	request NUMBER [LEFT]	its submission of this number (from 0) waits for something;
 *				a time-out until some time: for so many nanoseconds more
 */
struct image_ring {
	uint32_t flags; /* IORING_SETUP_*: the flags that matter to the program */
	uint32_t sq_entries, cq_entries;
	uint32_t sq_head, sq_tail, cq_head, cq_tail;
	uint32_t sq_dropped, cq_flags, cq_overflow;
	int32_t tid; /* the thread that may submit to it, or one of its process */
	uint32_t sq_cpu;
	uint32_t reserved[4];
};
IMAGE_SIZE_IS(struct image_ring, 64);

/* What is under way in a pseudo-terminal follows: struct image_pty_line line_count times, input
 * bytes (what the slave will read), output bytes (what the master will read). */
struct image_pty {
	uint32_t flags; /* IMAGE_PTY_* */
	uint32_t uid, gid, mode;
	uint16_t rows, columns, x_pixels, y_pixels;
	uint8_t termios[44]; /* struct termios2 of <asm/termbits.h> */
	uint32_t line_count, input, output;
	uint32_t reserved[2];
};
IMAGE_SIZE_IS(struct image_pty, 88);

#define IMAGE_PTY_OPENED    0x01u /* the slave, at some time */
#define IMAGE_PTY_HUNG_UP   0x02u /* there is no master any more, and nothing else but this */
#define IMAGE_PTY_LOCKED    0x04u /* against opening, TIOCSPTLCK */
#define IMAGE_PTY_PACKETS   0x08u /* packet mode, TIOCPKT */
#define IMAGE_PTY_EXCLUSIVE 0x10u /* TIOCEXCL */
#define IMAGE_PTY_STOPPED   0x20u /* the output, by ^S, */
#define IMAGE_PTY_SUSPENDED 0x40u /* or by tcflow(3) */

/* The controlling terminal that the program shares with the shell that started it. */
struct image_terminal {
	uint32_t flags; /* IMAGE_TERMINAL_* */
	uint16_t rows, columns, x_pixels, y_pixels;
	/* struct termios2 of <asm/termbits.h>: as the program has set it, and as it was before
	 * the program */
	uint8_t program[44], original[44];
};
IMAGE_SIZE_IS(struct image_terminal, 100);

/* How a descriptor has what is behind a standard stream of the shell that started the program.
 */
enum image_inherited {
	IMAGE_INHERITED_SHARED, /* the same open file */
	IMAGE_INHERITED_TTY,   /* the terminal, opened as /dev/tty; args[0]: 3: behind no stream
				*/
	IMAGE_INHERITED_AGAIN, /* the terminal, opened by its name */
};

#define IMAGE_TERMINAL_STREAM(n) (1u << (n)) /* it is behind standard stream n; */
#define IMAGE_TERMINAL_STREAMS   0x07u
#define IMAGE_TERMINAL_OPENED    0x08u /* the program has opened /dev/tty */
#define IMAGE_TERMINAL_ORIGINAL  0x10u /* `original` is known */

/* Input is read by lines, as it was cut. */
struct image_pty_line {
	uint32_t size;
	uint32_t end; /* IMAGE_PTY_LINE_* */
};
IMAGE_SIZE_IS(struct image_pty_line, 8);

#define IMAGE_PTY_LINE_OPEN  0u /* there may be more to come */
#define IMAGE_PTY_LINE_WHOLE 1u /* its last byte has ended it */
#define IMAGE_PTY_LINE_EOF   2u /* ended by an end of file (^D), which is no byte of it */

#define IMAGE_FILE_ABSENT     0x1u  /* there was none of this name */
#define IMAGE_FILE_IF_MISSING 0x2u  /* put back only where there is none of this name */
#define IMAGE_FILE_NOT_SAVED  0x4u  /* it was gone when it was to be read: left alone */
#define IMAGE_FILE_DIRECTORY  0x8u  /* of such files: made again where they miss it */
#define IMAGE_FILE_SET        0x10u /* such a directory: files that came later are moved aside */
#define IMAGE_FILE_LINK       0x20u /* a symbolic link: args[0] is the string that it holds */

#define IMAGE_SYSV_GUESSED 0x1u /* of older images: not restored, as it may be another's */
#define IMAGE_SYSV_UNUSED  0x2u /* nobody had used it yet */

struct image_queue_message {
	uint64_t type;
	uint64_t size; /* of the text that follows */
};
IMAGE_SIZE_IS(struct image_queue_message, 16);

/* What the end of process @pid adds to a semaphore (SEM_UNDO). */
struct image_sem_undo {
	int32_t pid;
	uint16_t number;
	int16_t undo;
};
IMAGE_SIZE_IS(struct image_sem_undo, 8);

#endif
