/*
 * message_records.h - messages between ranks: the program's requests, what has been sent to each peer and received from
 * it, and messages that were received for a checkpoint before the program has asked for them. Kept by the stub
 * in the upper half (stubs/mpi/requests.h), completed and made again by the lower half (lower/mpi/drain.c).
 */
#ifndef SHARED_MPI_MESSAGE_RECORDS_H
#define SHARED_MPI_MESSAGE_RECORDS_H

#include <stddef.h>
#include <stdint.h>

enum {
	MPI_REQUEST_NULL = 0x2c000000, /* MPI_MESSAGE_NULL, too */
	MPI_ANY_SOURCE = -2,
	MPI_ANY_TAG = -1,
	MPI_PROC_NULL = -1,
	/* A probe for it makes progress: all libraries have it, and hardly any program. MPICH 4.0.2 makes none on
	 * MPI_COMM_SELF, nor where a message is found at once. */
	MPI_UNUSED_TAG = 32767,
};

/* MPI_Status of MPICH's ABI, as ints. */
#define MPI_STATUS_INTS 5
enum mpi_status_int {
	MPI_STATUS_COUNT,      /* bytes, the lower 32 bits */
	MPI_STATUS_COUNT_HIGH, /* and the upper ones, above MPI_STATUS_CANCELLED */
	MPI_STATUS_SOURCE,
	MPI_STATUS_TAG,
	MPI_STATUS_ERROR,
};
#define MPI_STATUS_CANCELLED 1

/* Between this rank and another one, on one communicator. */
struct mpi_peer {
	uint64_t sent,
		received; /* messages; received ones are matched, though perhaps not complete */
	uint64_t due;     /* how many it has sent, as the supervisor says when all are frozen */
	int32_t world;    /* its rank in MPI_COMM_WORLD */
	uint32_t reserved;
};

/* A message that was received for a checkpoint. */
struct mpi_message {
	struct mpi_message *next; /* on its communicator, in the order of arrival */
	int32_t source, tag;
	int32_t request; /* real: it is still being received; MPI_REQUEST_NULL: it is complete */
	uint32_t reserved;
	uint64_t size, room; /* bytes of it, and of the memory behind `bytes` */
	char *bytes;
};

enum mpi_request_kind {
	MPI_NO_REQUEST,
	MPI_SEND,
	MPI_RECEIVE,
	MPI_MATCHED_RECEIVE, /* of a message that MPI_Mprobe has found */
	MPI_MATCHED_MESSAGE, /* no request: what MPI_Mprobe gives, a message not received yet */
	MPI_NONBLOCKING_OTHER,     /* of a nonblocking collective call, a file, a window ... */
	MPI_PERSISTENT_COLLECTIVE, /* persistent, of a collective call */
	MPI_GENERALIZED,           /* which the program completes itself */
	MPI_PARTITIONED_SEND,      /* the library has no request of it, nor of the next two */
	MPI_PARTITIONED_RECEIVE,
	MPI_BUFFER_FLUSH,      /* of MPI_Buffer_iflush and its like */
	MPI_PARTITIONED_BELOW, /* the library's own partitioned request, which is not saved */
};

enum mpi_send_mode {
	MPI_STANDARD,
	MPI_BUFFERED,
	MPI_READY,
	MPI_SYNCHRONOUS,
	MPI_SEND_MODES,
};

/* A generalised request that is freed before it is complete. */
enum mpi_orphan {
	MPI_ORPHAN_NONE,
	MPI_ORPHAN_TOLD,   /* MPICH has told the program that it is freed at once */
	MPI_ORPHAN_UNTOLD, /* Open MPI does so when it is complete */
	MPI_ORPHAN_AGAIN,  /* made again for that by a restart, and freed when it is complete */
};

/* The call by which a request is made again that is none of a message: its arguments, as the program gave them. */
#define MPI_ORIGIN_WORDS 12
enum mpi_word {
	MPI_WORD_PLAIN,
	MPI_WORD_HANDLE,
	MPI_WORD_HANDLES, /* an array of them, in the arena */
	MPI_WORD_RESULT,  /* where the request goes */
};

struct mpi_origin {
	uint64_t words[MPI_ORIGIN_WORDS];
	uint32_t counts[MPI_ORIGIN_WORDS]; /* of handles, if there are several */
	uint8_t kinds[MPI_ORIGIN_WORDS];   /* enum mpi_word */
	uint64_t
		order; /* how many collective calls on the communicator there were: the same in all members */
	uint64_t sequence;           /* in which order this rank has made them */
	struct mpi_object **objects; /* datatypes and operations that it uses */
	uint32_t object_count, object_room;
	uint64_t array_size, array_room; /* what arrays hold: bytes */
	char *arrays;
};

struct mpi_request {
	struct mpi_request *next; /* of the free list */
	uint32_t index;
	int32_t handle; /* the program's */
	int32_t real;   /* the library's; MPI_REQUEST_NULL: it has none any more */
	uint8_t kind;   /* enum mpi_request_kind */
	uint8_t mode;   /* enum mpi_send_mode */
	uint8_t persistent;
	uint8_t active;
	uint8_t held; /* complete, as `status` and `error` say, and the program does not know yet */
	uint8_t cancelled; /* the program has asked for that */
	uint8_t freed;     /* by the program, while the message was under way */
	uint8_t own_op;    /* a reduction by a function of the program's */
	uint8_t counted;   /* its message is among mpi_peer.received already */
	uint8_t completed; /* a generalized one, by the program */
	uint8_t orphan;    /* the same, freed before that: enum mpi_orphan */
	uint8_t fortran;   /* a generalized one, whose functions are in Fortran */
	uint32_t call;     /* the function that has made it: its number in the API */
	int32_t peer, tag;
	int32_t comm, datatype; /* the program's handles */
	int32_t real_comm; /* of MPI_Bsend_init: the library's, for when the program has freed it */
	/* Of a partitioned one: */
	int32_t world;        /* the peer's rank in MPI_COMM_WORLD */
	int32_t parts, ready; /* partitions, and how many of them are ready, of a send */
	int64_t part_size, part_extent; /* bytes of each, packed and in the buffer */
	uint64_t order;                 /* which of those with its communicator, peer and tag */
	uint32_t sent; /* all are ready, and the message is among the buffered sends */
	uint32_t reserved;
	struct mpi_buffer
		*in; /* of a buffered send that is under way, a flush, or a partitioned send */
	void *buffer;
	int64_t count;
	uint64_t posted; /* in which order they have become active */
	uint64_t number; /* of the communicator */
	struct mpi_count *counts;
	struct mpi_object *type;     /* that is used by it, NULL: a predefined one */
	struct mpi_message *message; /* of MPI_MATCHED_MESSAGE, when it has been received */
	struct mpi_request *pair;    /* the send that is complete with this receive, or NULL */
	struct mpi_message *packed;  /* of a send: memory for what is sent, or NULL */
	/* Of a nonblocking collective call about a file: the one begun before it on that file, if it is still that
	 * one. */
	struct mpi_request *elder;
	uint64_t elder_posted;
	struct mpi_origin
		*origin; /* of the last two kinds; else it may be one that was used before */
	int32_t status[MPI_STATUS_INTS];
	int32_t error;
	int32_t send_error; /* of the pair that it had */
};

/* A thread that waits for messages: shown to the supervisor. */
struct mpi_wait {
	uint32_t used;
	uint32_t call; /* the function it waits in: its number in the API */
	int32_t peer;  /* rank in MPI_COMM_WORLD; -1: any of the communicator */
	uint32_t reserved;
	uint64_t number; /* of the communicator */
};

/* What the lower half is at, of operations on windows. */
enum mpi_window_stage {
	MPI_WINDOWS_COMPLETE, /* nothing */
	MPI_WINDOWS_AWAITED,  /* waits for other ranks, to complete them together */
	MPI_WINDOW_FLUSHED,   /* completes them, or waits until others have */
};

#define MPI_WAITS          256
#define MPI_REQUEST_BLOCK  4096 /* requests that are allocated together */
#define MPI_REQUEST_BLOCKS 1024
#define MPI_MESSAGE_SIZES  17 /* lists of free memory, by powers of two up to 64 KiB */

struct mpi_messages {
	uint64_t steps; /* another number when a message has been sent or received */
	uint64_t polls; /* how often one was looked for in vain by a call that does not wait */
	uint32_t poll_call;
	uint32_t reserved;
	struct mpi_wait waits[MPI_WAITS];

	/* What the last look of the lower half at a frozen program has found (lower/mpi/drain.c). */
	uint32_t drained;     /* nothing is under way to or from this rank */
	uint32_t synchronous; /* synchronous sends that no receive has matched yet */
	uint32_t windows;     /* enum mpi_window_stage */
	/* The number of the checkpoint for which operations on windows are to be completed: written by the supervisor,
	 * higher than all that any rank has had. */
	uint32_t drain_round;
	struct mpi_wait wait; /* what it waits for, or the first of those */

	uint32_t lock; /* of what follows, when several threads may be in calls */
	uint32_t used; /* requests in the table, free ones included */
	struct mpi_request *free;
	struct mpi_request *blocks[MPI_REQUEST_BLOCKS];
	uint64_t posted;
	uint32_t freed;  /* requests that are `freed` */
	uint32_t queued; /* messages in queues of all communicators */
	int32_t self; /* a communicator of our own with this rank only, real; 0: not made yet */
	int32_t world_handler; /* error handler of MPI_COMM_WORLD, the program's handle */
	uint32_t handlers;     /* another communicator may have another one */
	uint32_t memory_lock;
	uint64_t next_map; /* where memory for the next large one is looked for */
	struct mpi_message *memory[MPI_MESSAGE_SIZES]; /* free, by log2 of the size */
};

static inline struct mpi_request *mpi_request_at(const struct mpi_messages *m, uint32_t index)
{
	return &m->blocks[index / MPI_REQUEST_BLOCK][index % MPI_REQUEST_BLOCK];
}

/* What has to be complete before @r is looked at; NULL: nothing. ROMIO makes progress of a nonblocking collective call
 * when it is looked at, by further collective calls on the file's communicator, which all ranks must make in the same
 * order. */
static inline struct mpi_request *mpi_request_elder(const struct mpi_request *r)
{
	struct mpi_request *e = r->elder;

	return e && e->posted == r->elder_posted && e->active && !e->held ? e : NULL;
}

/* In bytes. */
static inline uint64_t mpi_received_size(const int32_t *status)
{
	return (uint32_t)status[MPI_STATUS_COUNT] |
	       (uint64_t)((uint32_t)status[MPI_STATUS_COUNT_HIGH] >> 1) << 32;
}

static inline int mpi_is_cancelled(const int32_t *status)
{
	return status[MPI_STATUS_COUNT_HIGH] & MPI_STATUS_CANCELLED;
}

/* The size of memory for @size bytes of a message, and its list; -1: it is mapped by itself. */
static inline int mpi_message_class(uint64_t size)
{
	int class = 5;

	while (size > 1ul << class)
		class ++;
	return class < MPI_MESSAGE_SIZES ? class : -1;
}
#endif
