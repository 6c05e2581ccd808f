/*
 * graph_memory.h - memory that nodes of graphs allocate and free, inside of the stub: what graph_memory.c, graph_memory_nodes.c
 * and graph_memory_launch.c have of each other. Functions that return an int return a CUresult.
 */
#ifndef STUBS_CUDA_GRAPH_MEMORY_H
#define STUBS_CUDA_GRAPH_MEMORY_H

#include "stubs/cuda/graphs.h"
#include "stubs/cuda/memory.h"

/* Of struct graph_allocation */
#define LOCATION_DEVICE 1 /* CU_MEM_LOCATION_TYPE_DEVICE */
#define PINNED          1 /* CU_MEM_ALLOCATION_TYPE_PINNED */

/* ---- graph_memory.c ---- */

STUB_HIDDEN int graph_memory_is_supported(const struct graph_allocation *p);
/* Memory for the node of @p, which is supported; *memory has one reference, the caller's. */
STUB_HIDDEN int graph_memory_new(
	const struct graph_allocation *p, struct graph_memory **memory);
/* That at @address, with a reference, which the caller drops; NULL: there is none. */
STUB_HIDDEN struct graph_memory *graph_memory_find(uint64_t address);
STUB_HIDDEN void graph_memory_refer(struct graph_memory *m);
/* With the last reference the memory goes, at once, or when what may be using it has come to an end. */
STUB_HIDDEN void graph_memory_drop(struct graph_memory *m);
/* Something may be using it until @mark is reached (NULL: it is not known until when). */
STUB_HIDDEN void graph_memory_set_mark(
	struct graph_memory *m, struct graph_mark *mark, driver_call *call);
/* Under the lock: how much there is, and in use, as a maximum. */
STUB_HIDDEN void graph_memory_note_high(uint32_t device);

/* ---- graph_memory_nodes.c ---- */

/* A node of @state's graph (real; NULL: of an executable), with the caller's reference to @m. Without memory for it, the caller
 * still has that. */
STUB_HIDDEN int graph_memory_note_node(struct graph_state *state, void *node,
	struct graph_memory *m, uint64_t size, int frees);
/* With their references. */
STUB_HIDDEN void graph_memory_free_nodes(struct graph_memory_node *list);

#endif
