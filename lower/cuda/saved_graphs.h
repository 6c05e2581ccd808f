/* saved_graphs.h - graphs before a checkpoint and after a restart: records of shared/cuda/graph.h. */
#ifndef LOWER_CUDA_SAVED_GRAPHS_H
#define LOWER_CUDA_SAVED_GRAPHS_H

#include "lower/cuda/cuda.h"
#include "shared/cuda/graph.h"

/* CU_LAUNCH_ATTRIBUTE_... that a kernel node may have, and where events would be. */
#define GRAPH_ATTRIBUTES 17
int graph_is_attribute(int id);

#define GRAPH_HOST_MEMORY 1 /* CU_MEMORYTYPE_HOST: of a side of a copy */

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

/* The object of a kind by the driver's handle; NULL: there is none. */
struct object *graph_object(const struct cuda_state *s, uint32_t kind, const void *real);

enum graph_detail {
	GRAPH_WHOLE,
	GRAPH_SHAPE, /* without parameters, which nodes do not have any more, nor what they refer to */
};

/* graph_save.c: a graph of the driver's, in records; its conditional nodes are in @conditionals. NULL
 * behind agent_fail(). */
struct graph_record *graph_describe(struct cuda_state *s, void *graph,
	struct graph_conditional *conditionals, enum graph_detail detail);

/* graph_save_nodes.c: the parameters of a node whose type is known. 0, or -1 behind
 * agent_fail(), as everything here. */
int graph_save_node(struct cuda_state *s, struct graph_node *n,
	struct graph_conditional *conditionals, enum graph_detail detail);
int graph_refuse_type(uint32_t type);

/* graph_records.c: memory of the records, zeroes or a copy; NULL behind agent_fail(). */
void *graph_records_alloc(struct cuda_state *s, uint64_t size);
void *graph_copy(struct cuda_state *s, const void *data, uint64_t size);

/* graph_origins.c: which nodes the nodes of @clone, which @g describes, were cloned from. */
int graph_mark_origins(
	const struct graph_record *g, const struct graph_state *state, void *clone);

/* graph_contexts.c: the contexts of all copies in @g, as the program has said it of a node, or
 * of the one it was cloned from; or there is only one. */
int graph_find_contexts(const struct cuda_state *s, const struct graph_record *g);

/* saved_user_objects.c: in a fresh driver, objects without graphs, with one reference more than they had; the references of the graph
 * or executable of @state, as the real @graph's; and such given back; and then the one of each. */
int user_objects_make(const struct cuda_state *s);
int user_objects_retain(const struct graph_state *state, void *graph);
int user_objects_release(const struct graph_state *state, void *graph);
int user_objects_made(const struct cuda_state *s);

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
