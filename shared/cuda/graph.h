/*
 * graph.h - what is recorded of CUDA graphs, in the records arena.
 *
 * The driver is asked about each graph at a checkpoint, and the graph is made again by the
 * calls that add nodes. An executable graph cannot be asked about: when one is instantiated, a
 * clone of its graph is made (stubs/cuda/graph_exec.c), the snapshot, to which whatever changes
 * the executable is done as well. At a restart the executable is instantiated from the
 * snapshot.
 */
#ifndef SHARED_CUDA_GRAPH_H
#define SHARED_CUDA_GRAPH_H

#include <stdint.h>

#include "shared/cuda/graph_params.h"
#include "shared/cuda/cuda_state.h"

/* Why a graph with CUDA_OBJECT_LOST cannot be restored: struct graph_state.reason. */
enum graph_reason {
	GRAPH_NO_REASON,
	GRAPH_OF_USER_OBJECT, /* it holds references to user objects that could not be followed */
	GRAPH_NO_SNAPSHOT,    /* it has nodes that no graph can be cloned with: node_type */
	GRAPH_NO_UPDATE,      /* a change to an executable graph could not be followed */
};

struct graph_pair {
	void *from, *to; /* nodes, real */
};

/* Nodes that the driver has given out in an array of its own, during a capture. */
struct graph_capture {
	struct graph_capture *next;
	uint64_t size; /* of this */
	uint64_t stream, thread;
	void *nodes[];
};

/* A handle by which kernels set the value of a conditional node: its number in the graph that it was
 * made for, from 1 on. The graphs of conditional nodes have theirs with the whole. */
struct graph_handle {
	void *context; /* real */
	uint32_t value, flags;
};

/* A conditional node, of which the driver tells nothing but that it is one. */
struct graph_conditional {
	struct graph_conditional *next;
	uint64_t size; /* of this */
	void *node;    /* real; NULL: it is no more */
	uint64_t handle;
	uint32_t type, count;
	void *context;  /* real */
	void *graphs[]; /* as the program holds them; of a graph of ours: real */
};

/* How far a stream had come (stubs/cuda/graph_marks.c). Unused: with neither holders nor an order. */
struct graph_mark {
	struct graph_mark *next;
	void *event; /* the driver's, ours; NULL: it had been reached before a restart, or has gone with its context */
	void *context;              /* real */
	struct memory_order *order; /* of memory that waits for it; NULL */
	uint64_t holders;           /* struct graph_memory and executables */
};

/* Memory that nodes of graphs allocate and free: an allocation of ours (stubs/cuda/graph_memory.c). */
struct graph_memory {
	struct graph_memory *next;
	struct graph_allocation params;
	uint64_t id; /* of the struct devmem_allocation; 0: that has gone with its context */
	uint32_t references; /* of graphs and executables, and one while it is live */
	uint32_t live; /* not 0: a launch has allocated it, and nothing has freed it since */
	uint64_t launched;       /* something may still be using it, until `mark` is reached */
	struct graph_mark *mark; /* NULL, though launched: not known */
};

/* A node of a graph that allocates or frees: an empty one for the driver. */
struct graph_memory_node {
	struct graph_memory_node *next;
	void *node; /* real; of an executable: NULL */
	struct graph_memory *memory;
	uint64_t size; /* that it allocates */
	/* It frees; nothing that depends on it may have the memory: another node has it already, or
	 * another graph had allocated it. */
	uint32_t frees, reused;
};

enum user_object_end {
	USER_OBJECT_LIVES,
	USER_OBJECT_ENDS, /* its destructor is under way */
	USER_OBJECT_ENDED,
};

/* A user object: the driver calls a function of the program's when the last reference to it goes, and cannot be asked how many
 * there are. So they are counted as it does (stubs/cuda/user_objects.c). What struct object.value leads to. */
struct user_object {
	struct user_object *next;
	struct object *object; /* NULL: no references are left */
	void *destroy, *data;  /* the program's */
	void *callback;        /* what the driver calls, with the address of this */
	uint64_t owned, total; /* references of the program itself; and with those of graphs */
	uint32_t end, pad; /* enum user_object_end: set by the thread that calls `destroy` */
};

/* How many references a graph has, executable or not. */
struct user_reference {
	struct user_reference *next;
	struct user_object *user;
	uint64_t count;
};

/* What struct object.value of a graph, executable or not, leads to. */
struct graph_state {
	struct graph_state *next; /* of those to be freed */
	uint32_t reason, node_type;
	struct user_reference *
		user_references; /* those of graphs inside are theirs; but of an executable: all */
	/* What it was cloned from or instantiated from, if that lives: has that sequence. */
	struct object *origin;
	uint64_t origin_sequence;
	/* It was made again since: nodes of its origin, by address, and what stands for them.
	 * The driver does not know them for clones. */
	uint64_t restarted;
	uint64_t paired; /* nor for a snapshot that is a copy (graph_copy.c): there are pairs */
	struct graph_pair *pairs;
	uint64_t pair_count, pair_bytes;
	/* Of a whole graph; of an executable: of the snapshot, with the values as of an update. */
	struct graph_handle *handles;
	uint64_t handle_count, handle_bytes;
	struct graph_conditional *conditionals, *update_conditionals;
	struct graph_memory_node *memory_nodes;
	/* Of an executable: the graph whose memory it has, if that lives: has that sequence. */
	struct object *memory_from;
	uint64_t memory_from_sequence;
	/* Of an executable: real graphs. */
	void *snapshot;  /* its nodes stand for the nodes of the origin */
	void *update;    /* of the same shape, with the parameters as of an update; NULL */
	void **disabled; /* nodes of the snapshot */
	uint64_t disabled_count, disabled_bytes;
	/* Of a graph that is being captured: */
	uint64_t capturing; /* the stream by which the program came to know it; 0: it is not */
	struct graph_capture *captures;
	struct graph_mark *mark; /* of an executable that has been launched: its last launch */
};

static inline struct graph_state *graph_state(const struct object *o)
{
	return (struct graph_state *)o->value;
}

/* Of the conditional node @node; NULL: there is none in @list. */
static inline struct graph_conditional *graph_conditional(
	struct graph_conditional *list, const void *node)
{
	while (list && list->node != node)
		list = list->next;
	return list;
}

/* Where the real handle of a graph of @c is. */
static inline void **graph_body(struct graph_conditional *c, uint32_t i)
{
	return in_records_window((uintptr_t)c->graphs[i])
		       ? &((struct object *)c->graphs[i])->real
		       : &c->graphs[i];
}

/* What @state's graph was made of, or NULL: it no longer exists. */
static inline struct object *graph_origin(const struct graph_state *state)
{
	struct object *o = state->origin;

	return o && o->sequence == state->origin_sequence && !((uintptr_t)o->real >> 63) ? o
											 : NULL;
}

/* ---- written at a checkpoint, by the lower half ---- */

struct graph_attribute {
	int32_t id, pad;
	uint64_t value[8];
};

struct graph_record;

struct graph_node {
	struct object *object; /* the program knows it; NULL */
	void *real;            /* at the checkpoint */
	void *origin;          /* the same, of the node that it was cloned from; NULL */
	void *made;            /* at the restart */
	uint32_t type, disabled;
	uint32_t dependency_count, attribute_count;
	uint32_t *dependencies; /* by number */
	uint64_t *edges;        /* CUgraphEdgeData of each */
	struct graph_attribute *attributes;
	void *context;               /* real; of copies, and of a kernel's function */
	struct object *handle;       /* function, kernel or event */
	struct object *kernel;       /* told beside the function */
	uint64_t function_of_kernel; /* the handle is a kernel, and the node has its function */
	union graph_params params;
	struct graph_conditional *conditional;
	struct graph_memory_node *memory;
	/* The graphs inside: a child, or those of a conditional node. */
	struct graph_record **inner;
	uint64_t inner_count;
};

struct graph_record {
	struct object *object; /* the program knows it; NULL */
	uint64_t count;
	struct graph_node *nodes;
};

struct graph_saved {
	struct graph_saved *next;
	struct object *object;
	struct graph_record *graph; /* of an executable: of its snapshot */
	uint64_t flags;             /* of an executable */
	void *made;                 /* the snapshot, at the restart */
};

/* Memory of the arena for all this, written anew at each checkpoint. */
struct graph_chunk {
	struct graph_chunk *next;
	uint64_t size, used;
};

#endif
