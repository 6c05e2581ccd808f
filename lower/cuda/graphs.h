/* graphs.h - graphs before a checkpoint and after a restart: records of shared/cuda/graph.h. */
#ifndef LOWER_CUDA_GRAPHS_H
#define LOWER_CUDA_GRAPHS_H

#include "lower/cuda/cuda.h"
#include "shared/cuda/graph.h"

/* CU_LAUNCH_ATTRIBUTE_... that a kernel node may have, and where events would be. */
#define GRAPH_ATTRIBUTES 17
int graph_is_attribute(int id);

/* The nodes of a real graph, with malloc. 0, or -1 behind agent_fail(). */
int graph_nodes(void *graph, void ***nodes, size_t *count);
struct graph_index;
struct graph_index *graph_index_new(void *const *nodes, size_t count);
/* The number of @node; -1: it is none of them. */
long graph_index_find(const struct graph_index *index, const void *node);
void graph_index_free(struct graph_index *index);
/* How many nodes @node depends on: *@list and *@edges, to be freed; -1 behind agent_fail(). */
long graph_edges(
	void *node, const struct graph_index *index, uint32_t **list, uint64_t **edges);

/* graph_functions.c: the objects that functions in graphs are known by. */
struct graph_function {
	void *real, *context;
	struct object *object;
	int of_kernel;
};
/* NULL: none. */
const struct graph_function *graph_function(const struct cuda_state *s, const void *real);
/* They are looked up anew from now on. */
void graph_functions_forget(void);

#endif
