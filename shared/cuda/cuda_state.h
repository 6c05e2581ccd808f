/*
 * cuda_state.h - what is recorded of the driver's state in a process: enough to make it again.
 *
 * In the records arena (shared/records.h): written by the stub, read by the lower half's agent,
 * by the supervisor and by trecr-inspect. Plain fixed-width structs. A handle of the program's
 * is the address of a struct object; the real one comes first, so that an entry point
 * translates it with one load.
 */
#ifndef SHARED_CUDA_CUDA_STATE_H
#define SHARED_CUDA_CUDA_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "shared/cuda/offsets.h"
#include "shared/address_windows.h"

#define CUDA_STATE_MAGIC   0x6574617473647563 /* "cudstate" */
#define CUDA_STATE_VERSION 14

/* Their names for messages are in tools/inspect/gpu.c. Append only: numbers are in images. */
enum cuda_kind {
	CUDA_CONTEXT = 1,
	CUDA_STREAM,
	CUDA_EVENT,
	CUDA_MODULE,
	CUDA_LIBRARY,
	CUDA_FUNCTION,
	CUDA_KERNEL,
	CUDA_POOL,
	CUDA_ARRAY,
	CUDA_TEXTURE,
	CUDA_SURFACE,
	CUDA_MEMORY_HANDLE,
	CUDA_GRAPH,
	CUDA_GRAPH_EXEC,
	CUDA_GRAPH_NODE,
	CUDA_OTHER,
	CUDA_MIPMAPPED_ARRAY,
	CUDA_LINKER,
	CUDA_USER_OBJECT,
	CUDA_GREEN_CONTEXT,
	CUDA_ASYNC_CALLBACK,
	CUDA_LOG_CALLBACK,
	CUDA_ADDRESS, /* that the program has asked for: of a variable of a module */
	CUDA_STORAGE, /* what a runtime library keeps with a context */
	CUDA_RESOURCE_DESCRIPTION,
	CUDA_SETTING, /* of something that is no object: it is not known how to set it again */
	CUDA_EXTERNAL_MEMORY,
	CUDA_EXTERNAL_SEMAPHORE,
	CUDA_EXTERNAL_BUFFER, /* external memory that is mapped: its handle is its address */
	CUDA_KINDS,
};

/* What a CUDA_SETTING is of: its value. In images. */
enum cuda_setting {
	CUDA_SETTING_STREAM, /* a thread's default stream */
	CUDA_SETTING_MEMORY,
	CUDA_SETTING_FUNCTION, /* used by a handle that a function without a name gave */
	CUDA_SETTINGS,
};

/* Of the handle of an object that has been destroyed: calls with it are refused. */
#define CUDA_DEAD (1ul << 63)

/*
 * A call that has made an object, or changed it since: what it takes to make the object again.
 * Handles are as the program gave them; what pointers led to has been copied, and pointers lead
 * to the copies.
 */
struct cuda_call {
	struct cuda_call *next; /* of the object, in their order */
	uint64_t sequence;
	void *context;  /* the current one, real */
	uint64_t size;  /* of this record with the copies */
	uint32_t index; /* of the function: cuda_info[] */
	uint32_t words;
	uint64_t arguments[];
};

/* Anything with a handle. It is never given back to the arena, so that a handle that is used
 * too late leads to an object still, if only a dead one. */
struct object {
	void *real; /* the driver's handle in this process */
	uint32_t kind, flags;
	uint64_t sequence;     /* in the order that objects were made in */
	uint64_t size;         /* of the whole record */
	struct object *parent; /* dies with it */
	struct object *next,
		*previous;         /* among the living, by sequence; of a dead one, next dead */
	struct object *alike;      /* next in the same list of cuda_state.by_real */
	uint64_t list;             /* which that is */
	void *context;             /* the real one it belongs to, or NULL */
	struct cuda_call *made;    /* NULL: its kind's own way */
	struct cuda_call *changes; /* since then */
	uint64_t used;             /* when a function was first used, in the sequence */
	uint64_t value; /* as its kind wants: of an array, where an image has its contents */
	struct cuda_global *globals;
	uint64_t scanned;  /* its globals are known, in contexts up to this sequence */
	void *mark;        /* of a context: an event recorded at the restart, real */
	double time;       /* of a mark, or of an event before it: milliseconds */
	double saved_time; /* of a context: when the last checkpoint was */
	/* The number of a context or stream, and of a context's default stream, as the program
	 * knows it, plus one: struct cuda_numbers. 0: it has not asked. */
	uint64_t number, stream_number;
	const char *
		name; /* a function's or kernel's, in the program's memory; NULL: it has not asked */
};
_Static_assert(offsetof(struct object, real) == 0, "");
_Static_assert(offsetof(struct object, flags) == CUDA_OBJECT_FLAGS, "");

/* What a thread has in the driver, as of the last checkpoint. */
#define CUDA_STACK 16
struct cuda_thread {
	struct crossing_thread *thread;
	uint32_t depth;
	int32_t capture_mode;
	void *contexts[CUDA_STACK]; /* the current one last */
};

enum cuda_global_kind {
	CUDA_GLOBAL_VARIABLE,
	CUDA_GLOBAL_ALLOCATES, /* no variable, but a kernel that calls malloc; no name: any may
				*/
	/* A variable that the driver does not report, as another one has its name: where it
	 * lies is seen by its neighbours. Address 0: they do not show it. */
	CUDA_GLOBAL_HIDDEN,
};

/* A variable of a module, or of a library that is loaded, with its contents as of the last
 * checkpoint. */
struct cuda_global {
	struct cuda_global *next;
	uint64_t size_of_this; /* a power of two */
	void *context;
	uint64_t address, size;
	/* What the driver has allocated for it: constants of a program lie together. */
	uint64_t allocation, allocation_size;
	void *data;
	uint64_t data_size; /* a power of two */
	uint64_t allocates; /* enum cuda_global_kind */
	uint64_t managed;   /* it is in managed memory */
	char name[];
};

/* A word of one of the driver's tables of functions that has been exchanged. */
struct cuda_patch {
	struct cuda_patch *next;
	void **word;
	void *before, *after; /* the same in a table that is handed out as it is */
	/* Words of the stub that lead to @before, and to another driver's function after a
	 * restart; the second may hold something else, or be NULL. */
	void **leads[2];
};

/* A table that the program has got. With another build of the driver it is made again from this, in
 * pages of its own, as the program holds its address. */
struct cuda_table {
	struct cuda_table *next;
	uint8_t id[16];
	void **words;
	uint32_t count;
	uint32_t moved; /* it lies in such pages, and not in the driver */
	void *driver[]; /* as the driver had it: @count words */
};

/* A function without a name that has been called, of which nobody knows what it leaves in the
 * driver: its table, and its place there. */
struct cuda_unknown {
	struct cuda_unknown *next;
	uint8_t id[16];
	uint64_t slot;
};

struct cuda_range {
	uint64_t start, end;
};

/* Arguments of a CUDA_STORAGE's record, which is of no function of the API. */
#define CUDA_NO_FUNCTION UINT32_MAX
enum { STORAGE_KEY, STORAGE_VALUE, STORAGE_DESTRUCTOR, STORAGE_WORDS };

#define CUDA_BLOCK_SIZES 40
#define CUDA_LISTS       4096
#define CUDA_DEAD_KEPT   64 /* so many of a kind are not used again yet */

enum cuda_memory {
	CUDA_MEMORY_DEVICE = 1,
	CUDA_MEMORY_PINNED, /* upper memory, registered with the driver */
	CUDA_MEMORY_MANAGED,
	CUDA_MEMORY_ARRAY, /* contents of arrays, at addresses of an image: ARRAYS_WINDOW */
};

/* struct allocation.flags */
#define CUDA_ALLOCATION_SAVE                                                                   \
	0x1u /* its contents belong into an image: [address, address + size) */

/* Memory that the program has allocated. */
struct allocation {
	uint64_t address, size;
	uint64_t mapped; /* bytes that the device can reach from address on: save and load that
			  */
	uint32_t kind, flags;
	uint32_t device;
	uint32_t reserved;
	struct object *owner; /* context or pool */
	struct allocation *next, *previous;
};

#define CUDA_PROPERTIES 32

struct cuda_device {
	uint8_t uuid[16];
	char name[96];
	uint64_t memory;
	uint32_t primary_flags,
		primary_flags_set;           /* of the primary context; and whether they were */
	int32_t properties[CUDA_PROPERTIES]; /* device_properties.h */
};

/* The driver numbers contexts, and streams, in each process anew. The program sees the driver's
 * numbers from a base on, which is moved behind all it has seen at a restart: none comes twice.
 */
enum { NUMBERS_CONTEXT, NUMBERS_STREAM, NUMBERS_KINDS };
struct cuda_numbers {
	uint64_t base, next;
};

/* At RECORDS_CUDA. */
struct cuda_state {
	uint64_t magic;
	uint32_t version;
	uint32_t lock; /* of the lists; held with signals blocked or inside a guarded body */
	uint32_t initialised; /* cuInit was called with success */
	int32_t driver_version;
	uint32_t device_count, primaries_lock;
	/* Of contexts; and for each device what is known of its primary one: query_cache.c. */
	uint64_t generation, primaries[CUDA_DEVICES];
	struct cuda_device devices[CUDA_DEVICES];
	uint64_t sequence; /* of the last object */
	uint64_t alive[CUDA_KINDS];
	struct object *objects, *objects_end;
	struct object *by_real[CUDA_LISTS]; /* the living again, by object_list() */
	struct allocation *allocations; /* true after a drain, neighbours as one; consecutive */
	uint64_t allocation_count;
	struct memory_state *memory; /* memory_state.h; NULL: none yet */
	/* Of each kind, oldest first: to be used again as late as can be. */
	struct object *dead[CUDA_KINDS], *dead_end[CUDA_KINDS];
	uint64_t dead_count[CUDA_KINDS];
	/* Blocks of the arena that are free, by the power of two that is their size. */
	void *blocks[CUDA_BLOCK_SIZES];
	/* Filled by the lower half before a checkpoint. */
	struct cuda_thread *threads;
	uint64_t thread_count, thread_room;
	struct cuda_patch *patches;
	struct cuda_table *tables;
	uint64_t driver_changed;   /* contexts may have been placed by another build of it */
	uint8_t storage_table[16]; /* by what name the driver's table of storage functions goes
				    */
	struct cuda_numbers numbers[NUMBERS_KINDS];
	uint64_t graphs_launchable; /* there has been an executable graph */
	/* Address space of the driver's that variables may lie in, the oldest first: as of the
	 * last checkpoint. */
	struct cuda_range *ranges;
	uint64_t range_count, range_room;
	struct cuda_unknown *unknown;
	uint64_t unknown_lost; /* there are more */
	/* Graphs as of the last checkpoint: graph.h. */
	struct graph_saved *graphs;
	struct graph_chunk *graph_chunks;
	/* What nodes of graphs allocate; and the most of it, in use and in all: of each device. */
	struct graph_memory *graph_memory;
	uint64_t graph_memory_high[CUDA_DEVICES][2];
	struct graph_mark *graph_marks;   /* all that there are */
	struct user_object *user_objects; /* with such as have just ended */
};

_Static_assert(sizeof(struct cuda_state) <= RECORDS_HEAP - RECORDS_CUDA, "");
_Static_assert(offsetof(struct cuda_state, generation) == CUDA_STATE_GENERATION, "");
_Static_assert(offsetof(struct cuda_state, primaries) == CUDA_STATE_PRIMARIES, "");

#define CUDA_STATE ((struct cuda_state *)RECORDS_CUDA)

/* In which list of by_real an object is, so that what the driver gives out is found among
 * thousands. */
static inline uint64_t object_list(uint32_t kind, const void *real)
{
	return (((uintptr_t)real >> 4 ^ kind) * 0x9e3779b97f4a7c15) >> 52;
}
_Static_assert(CUDA_LISTS == 1 << (64 - 52), "");

static inline void object_enlist(struct cuda_state *s, struct object *o)
{
	o->list = object_list(o->kind, o->real);
	o->alike = s->by_real[o->list];
	s->by_real[o->list] = o;
}

#endif
