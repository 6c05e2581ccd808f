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
/* A graph has been given references to user objects, or has given some back. */
STUB_HIDDEN void graph_refer(struct object *graph, int64_t change);

/* graph_exec.c. @o has just been instantiated from @graph, which may be NULL: not known. */
STUB_HIDDEN void graph_instantiated(struct object *o, struct object *graph);
/* A call that has changed an executable graph, with real handles. */
STUB_HIDDEN void graph_follow(
	struct object *o, unsigned index, const uint64_t *words, struct object *from);
/* Its snapshot is needed no longer. */
STUB_HIDDEN void graph_exec_gone(struct graph_state *state);

#endif
