/*
 * mpi_state.h - what makes the MPI library of the lower half again: recorded by the stub in the upper
 * half, read and completed by the lower half at a checkpoint, read by it at a restart.
 *
 * A handle that the program holds is an int that looks like one of MPICH's, with a bit set that
 * MPICH has no use for (MPI_VIRTUAL), and the index of an object in the rest. Handles that MPICH's ABI
 * gives a value stay as they are.
 */
#ifndef SHARED_MPI_MPI_STATE_H
#define SHARED_MPI_MPI_STATE_H

#define MPI_VIRTUAL      0xc2000000 /* what a handle of an object has set */
#define MPI_HANDLES      0x40000    /* that there can be at a time; a power of two */
#define MPI_HANDLES_MASK (MPI_HANDLES - 1)

/* Pieces of code that wait for the library, one for each function (stubs/mpi/library_reserved.c), and bytes of each. */
#define MPI_WAITING      1024
#define MPI_WAITING_SIZE 16

#ifndef __ASSEMBLER__
#include <stdint.h>

/* Numbers as in MPICH's handles. */
enum mpi_kind {
	MPI_COMM = 1,
	MPI_GROUP = 2,
	MPI_DATATYPE = 3,
	MPI_ERRHANDLER = 5,
	MPI_OP = 6,
	MPI_INFO = 7,
	MPI_WINDOW = 8,
	MPI_KEYVAL = 9,
	MPI_SESSION = 14,
	MPI_FILE = 12, /* its handle is an address (shared/mpi/file_records.h) */
	MPI_REQUEST =
		11, /* and messages that a probe has matched (shared/mpi/message_records.h) */
};

#define MPI_KIND_SHIFT      26
#define MPI_KIND_NULL(kind) ((int32_t)((kind) << MPI_KIND_SHIFT))

/* Of what objects the callbacks of a keyval or an error handler are called for. */
enum mpi_subject {
	MPI_OF_COMM,
	MPI_OF_DATATYPE,
	MPI_OF_WINDOW,
	MPI_OF_FILE,
	MPI_OF_SESSION,
};

/* What is attached for buffered sends. The library is given none, and nothing is written to it: it says how many copies
 * may be under way (stubs/mpi/messages_buffered.c). */
struct mpi_buffer {
	void *address;           /* the program's; NULL: none is attached */
	int64_t size;            /* bytes; INT64_MAX: MPI provides it (MPI_BUFFER_AUTOMATIC) */
	int64_t taken;           /* of them, by what is under way */
	uint32_t under_way;      /* sends */
	uint32_t ended;          /* its communicator or session has been freed */
	struct mpi_buffer *next; /* of the free ones */
};

/* What MPI is asked about an object at a checkpoint, as numbers and strings in a row. */
struct mpi_saved_values {
	uint64_t size, room;
	char *bytes; /* in the arena */
};

/*
 * What this rank has done on a communicator, or is about to do: the supervisor reads it while the program runs,
 * and writes the limit (stubs/mpi/collective_gate.c, supervisor/split/running_mpi.h).
 */
struct mpi_count {
	uint64_t
		number; /* the same in all ranks, and of no other that there ever was; 0: free */
	uint64_t entered, left; /* collective calls */
	uint64_t limit;         /* how many may be entered while the gate is closed */
	uint64_t calls_of_some; /* begun on it that not all members take part in */
	uint32_t parked;        /* threads that wait in front of one */
	uint32_t call;    /* what was entered last, or is waited for: its number in the API */
	uint32_t members; /* how many ranks take part in collective calls; 0: not known */
	uint32_t beyond; /* threads in a call that waits for ranks which do not count it here */
	uint32_t size;   /* how many there are to send messages to: of two groups, the other */
	uint32_t peer_room;     /* that there is room for in */
	struct mpi_peer *peers; /* messages between two ranks; NULL: they are not counted */
	struct mpi_message *messages; /* received for a checkpoint, the oldest first */
};

#define MPI_COUNTS       16384
#define MPI_NUMBER_WORLD 1
#define MPI_NUMBER_PARTS 3 /* the stub's own communicator for partitioned requests */
#define MPI_NUMBER_SELF                                                                        \
	2 /* MPI_COMM_SELF: each rank's own, no collective call on it is counted */
#define MPI_NUMBER_OF_SOME (1ul << 63) /* calls on that communicator of some members only */
#define MPI_NUMBER_OF_FILE (1ul << 61) /* opened by MPI_File_open; not with the next bit */
#define MPI_NUMBER_OF_COPY                                                                     \
	(1ul << 62) /* made by MPI_Comm_idup, whose members tell each other none */

/* Why that is so. */
enum mpi_uncounted {
	MPI_ALL_COUNTED,
	MPI_TOO_MANY,  /* there are */
	MPI_NO_MEMORY, /* for what is counted of its members */
	MPI_FOREIGN,   /* it has processes that are not of MPI_COMM_WORLD */
};

struct mpi_object {
	struct mpi_object *next; /* of one bucket, or of the free list */
	uint32_t index;
	int32_t handle;  /* the program's; of the predefined ones, MPICH's */
	int32_t real;    /* the library's */
	uint8_t kind;    /* enum mpi_kind */
	uint8_t subject; /* enum mpi_subject */
	uint8_t committed;
	uint8_t commutes;
	uint8_t large;   /* an operation for large counts */
	uint8_t dying;   /* is being destroyed, and the real handle may be given out again */
	int32_t session; /* handle of what a group or communicator was made of; 0: no session */
	uint32_t
		references; /* that the program has; 0: it has none, but the real library may */
	uint64_t sequence;  /* in which order they were made */
	struct mpi_count *count; /* of a communicator or window; NULL: it is not counted */
	struct mpi_window
		*window; /* shared/mpi/window_records.h; NULL: one that is not saved */
	void *function;  /* of an operation or error handler, as the library calls it */
	/* Of a keyval: as the program gave them, and as the library calls them. */
	void *copy, *remove, *extra, *copy_proxy, *remove_proxy;
	void *lower_copy, *lower_remove;
	int32_t attribute_type; /* how Fortran has set its attributes; 0: an address */
	uint32_t attributes;    /* how many there are */
	uint64_t self_order;    /* of a keyval: in which order MPI_COMM_SELF was given it */
	uint32_t uses;          /* requests that have a datatype */
	struct mpi_buffer
		*buffer; /* of a communicator or session; NULL: it has never had one */
	struct mpi_saved_values saved;
};

/* A call by which the program has added an error, or removed one, with the number that it gave. */
enum mpi_error_call_kind {
	MPI_ERROR_CLASS,
	MPI_ERROR_CODE,
	MPI_ERROR_STRING,
	MPI_ERROR_CLASS_REMOVED,
	MPI_ERROR_CODE_REMOVED,
	MPI_ERROR_STRING_REMOVED,
};

struct mpi_error_call {
	struct mpi_error_call *next;
	uint32_t kind; /* enum mpi_error_call_kind */
	int32_t of, value;
	char text[];
};

#define MPI_BUCKETS 1024

/* What is noted of a function. */
enum mpi_called {
	MPI_NOT_NOTED,
	MPI_CALLED_UNSAVED, /* it was called, and has left what is not saved */
	MPI_CALLED_SHARED,  /* it was called, and uses the shared pointer of a file */
};

/* Where not all ranks have this stub there are no collective calls but the program's own, and no checkpoints. */
enum mpi_outsiders {
	MPI_NO_OUTSIDERS,
	MPI_OUTSIDERS,
	MPI_OUTSIDERS_UNKNOWN, /* the supervisor could not be asked: as if there were some */
};

struct mpi_state {
	int32_t initialised, finalized;
	/* By the first session of a program that has not called MPI_Init; and MPI_Finalize has been called, where there still are sessions
	 * (stubs/mpi/init.c). */
	int32_t by_session, world_ended;
	uint32_t sessions;  /* that the program has */
	uint32_t outsiders; /* enum mpi_outsiders */
	int32_t provided;   /* the thread level that the program was given */
	int32_t rank, size; /* of MPI_COMM_WORLD */
	int32_t lower_is_openmpi; /* the library of the lower half is Open MPI's, whatever ABI the program has */
	int32_t tag_ub; /* what the program was told of MPI_TAG_UB; 0: the library has none */
	int32_t version, subversion; /* the same of MPI_Get_version; 0: it is not known */
	uint64_t main;               /* FS base of the thread that has initialised it */
	const char *names; /* of all functions, each ended by 0, and an empty one at the end */
	uint8_t *called;   /* one each: enum mpi_called */
	uint32_t calls;    /* how many they are */

	int32_t several; /* it is one of several ranks, or may be */
	uint32_t
		gate; /* 0: open; else another number each time that the supervisor is heard of */
	uint32_t uncounted;   /* enum mpi_uncounted: there is a communicator without a count */
	uint32_t counts_used; /* from the first on */
	struct mpi_count *counts;
	struct mpi_messages *messages;
	struct mpi_files *files;
	/* Called by the lower half's agent before and after it uses the library (stubs/mpi/library_reserved.c). */
	void (*reserve)(int begin);
	uint32_t counts_lock;
	uint64_t numbers_given; /* to communicators, by this rank */

	struct mpi_buffer buffer;           /* of MPI_Buffer_attach */
	struct mpi_error_call *error_calls; /* in the order in which they were made */
	uint32_t error_calls_lost;          /* there was no memory for one */

	uint32_t lock;  /* of what follows, and of error_calls */
	uint32_t count; /* objects in the table, free ones included */
	uint64_t sequence;
	int32_t *reals;              /* real handles, by index */
	struct mpi_object **objects; /* the same */
	struct mpi_object *free;
	struct mpi_object *buckets[MPI_BUCKETS]; /* by real handle */
	struct mpi_object world, self;
	struct mpi_object
		*partitions; /* all ranks, for partitioned requests; NULL: there are none */
	struct mpi_window_control
		*controls; /* shared/mpi/window_records.h: each that has a window */
};

static inline int mpi_is_virtual(int32_t handle)
{
	return ((uint32_t)handle & MPI_VIRTUAL) == MPI_VIRTUAL;
}

static inline struct mpi_object **mpi_bucket(struct mpi_state *s, int32_t real)
{
	return &s->buckets[(uint32_t)real * 0x9e3779b1u >> 22];
}

/* The object whose handle in the library is @real; NULL: there is none. */
static inline struct mpi_object *mpi_find(struct mpi_state *s, int32_t real)
{
	struct mpi_object *o = *mpi_bucket(s, real);

	while (o && o->real != real)
		o = o->next;
	return o;
}
#endif

#endif
