/*
 * graphs.h - calls about graphs: handles of graphs and their nodes are exchanged both ways, and
 * what cannot be asked of the driver at a checkpoint is followed. For use in guarded bodies.
 */
#ifndef STUBS_CUDA_GRAPHS_H
#define STUBS_CUDA_GRAPHS_H

#include "shared/cuda/calls.h"
#include "shared/cuda/graph.h"
#include "stubs/cuda/objects.h"

/* cuda_info[index] is a call about graphs. */
STUB_HIDDEN int graph_concerns(const struct call_info *info);
/* The whole of such a call: @arguments are as the program gave them, but structures that
 * pointers lead to hold the driver's own handles. */
STUB_HIDDEN int graph_call(unsigned index, const uint64_t *arguments);

/* What the program is to hold for a node or graph of the driver's, which is part of @whole: a
 * graph, or a node with a graph of its own. */
STUB_HIDDEN void *graph_raise(enum cuda_kind kind, void *real, struct object *whole);
/* The same for a whole graph. */
STUB_HIDDEN struct object *graph_object(void *real);
STUB_HIDDEN struct object *graph_argument(enum cuda_kind kind, void *handle);
/* @o, and what it is part of, cannot be restored. */
STUB_HIDDEN void graph_lose(struct object *o, enum graph_reason reason);

/* What stands for the real @node of what @state's graph was made of, by the pairs that are kept; NULL:
 * none. */
STUB_HIDDEN void *graph_find_pair(const struct graph_state *state, const void *node);

/* graph_copy.c. The graph that @o is in, in the end, or is. */
STUB_HIDDEN struct object *graph_whole(struct object *o);
/* Graphs by their real handles. -1: no such node. */
STUB_HIDDEN int graph_node_type(void *node);
/* The graph of a node of type GRAPH_CHILD; NULL. */
STUB_HIDDEN void *graph_child(void *node);
struct graph_list {
	void **list; /* nodes, in their order */
	size_t count, size;
};
/* 0 or -1; graph_free_list() in either case. */
STUB_HIDDEN int graph_list_nodes(void *graph, struct graph_list *n);
STUB_HIDDEN void graph_free_list(const struct graph_list *n);

/* Conditional nodes. @node, with the bodies that the driver has given for it, is in @whole now; what
 * the program is to hold of these stands in @params then. */
STUB_HIDDEN void graph_conditional_added(
	struct conditional_node *params, struct object *node, struct object *whole);
/* A node of @graph, which may be NULL, has been destroyed, with those in its bodies. */
STUB_HIDDEN void graph_conditionals_gone(struct object *graph);
STUB_HIDDEN void graph_free_conditionals(struct graph_conditional **list);
/*
 * A copy of @graph, which has conditional nodes: such graphs cannot be cloned. Handles are numbers in
 * a graph, so those among the parameters of kernels hold in the copy. As the snapshot of @state, with
 * pairs; or as what that was updated from. NULL: it has nodes that cannot be copied, or its handles
 * are others.
 */
STUB_HIDDEN void *graph_copy_snapshot(struct graph_state *state, const struct object *graph);
STUB_HIDDEN void *graph_copy_update(struct graph_state *state, const struct object *graph);

/* graph_memory_nodes.c. Nodes that allocate and free: as the calls that add them; @edges may be NULL. */
STUB_HIDDEN int graph_add_allocation(void **node, void *graph, void *const *dependencies,
	const void *edges, size_t count, struct graph_allocation *params);
STUB_HIDDEN int graph_add_free(void **node, void *graph, void *const *dependencies,
	const void *edges, size_t count, uint64_t address);
/* A node of @graph, which may be NULL, has been destroyed; the graph or executable of @state has been. */
STUB_HIDDEN void graph_memory_node_gone(struct object *graph, const void *node);
STUB_HIDDEN void graph_memory_gone(struct graph_state *state);
/* graph_memory_rules.c. Before cuda_info's call @info with @given, as the program gave it: 0, or the error that the driver has for
 * graphs that allocate or free memory. Of an update, the program has its result then. */
STUB_HIDDEN int graph_memory_check(const struct call_info *info, const uint64_t *given);
/* graph_memory_launch.c. The executable of @state uses the memory of @graph now, and no longer what it did before. 0 or -1: it
 * still has that, too. */
STUB_HIDDEN int graph_memory_take(struct graph_state *state, struct object *graph);

/*
 * user_objects.c. References to user objects come along with what is made of a graph: a clone; a node with the child graph that
 * @child was cloned to, by the program's handle; an executable, which gives up those it had before. What has references that
 * cannot be followed is lost.
 */
STUB_HIDDEN void user_objects_cloned(struct object *clone, const struct object *graph);
STUB_HIDDEN void user_objects_in_child(void *node, const struct object *child);
STUB_HIDDEN void user_objects_in_executable(struct object *o, const struct object *graph);
/* @graph, or a graph inside it, has references. */
STUB_HIDDEN int user_objects_are_in(const struct object *graph);
/* The real @clone of @graph, which is ours, is not to have any. 0 or -1: it still has. */
STUB_HIDDEN int user_objects_strip(void *clone, const struct object *graph);
/* The graph or executable of @state is no more. */
STUB_HIDDEN void user_objects_drop(struct graph_state *state);

/* graph_exec.c. @o has just been instantiated from @graph, which may be NULL: not known. */
STUB_HIDDEN void graph_instantiated(struct object *o, struct object *graph);
/* A call that has changed an executable graph, with real handles. */
STUB_HIDDEN void graph_follow(
	struct object *o, unsigned index, const uint64_t *words, struct object *from);
/* Its snapshot is needed no longer. */
STUB_HIDDEN void graph_exec_gone(struct graph_state *state);

#endif
