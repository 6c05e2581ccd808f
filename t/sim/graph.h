/*
 * graph.h - graphs of nodes, executable graphs that are copies of them, and streams that are
 * being captured. As in the real driver, an executable graph knows nodes by the nodes of the graph
 * that it was instantiated from, and cannot be asked about them.
 */
#ifndef T_SIM_GRAPH_H
#define T_SIM_GRAPH_H

#include <stdbool.h>

#include "shared/cuda/graph_params.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"

#define SIM_ATTRIBUTES 17
#define SIM_PARAMS     3 /* of every kernel, eight bytes each */

struct sim_graph;

struct sim_edge {
	struct sim_node *from;
	uint64_t data;
};

struct sim_node {
	struct object object;
	struct sim_graph *graph;
	struct sim_node *next; /* in the order they were added in */
	int type;
	union graph_params params;
	uint64_t arguments[SIM_PARAMS];
	void *pointers[SIM_PARAMS];
	uint64_t attributes[SIM_ATTRIBUTES][8];
	struct sim_graph *child;
	uint64_t address; /* that it allocates or frees */
	/* Of a conditional node: */
	uint64_t handle;
	int condition; /* enum sim_condition */
	struct sim_graph **bodies;
	unsigned body_count;
	struct sim_edge *edges; /* what it depends on */
	size_t edge_count;
	struct sim_node *original; /* what it is a clone of, if that has this number still */
	uint64_t number, original_number;
	bool disabled, done;
};

/* CUgraphConditionalNodeType */
enum sim_condition { SIM_IF, SIM_WHILE, SIM_SWITCH };

/* What decides in a conditional node: the handle is its number in the whole graph, from 1 on. */
struct sim_handle {
	unsigned standard, flags, value;
	bool used; /* by a node; there is one at most */
};

struct sim_graph {
	struct object object;
	struct sim_node *first, **last;
	size_t count;
	struct sim_graph *original;
	struct sim_node *owner;
	uint64_t flags;
	struct sim_reference *references; /* to user objects */
	void *stream;                     /* of the last launch */
	bool is_launched;
	struct sim_handle *handles; /* of a whole one */
	size_t handle_count;
	/* With handles, or memory, there can be one executable at a time. */
	struct sim_graph *executable, *source;
};

struct sim_graph *graph_get(void *graph, const char *function);
struct sim_graph *graph_make(enum object_kind kind);
void graph_end(struct sim_graph *graph);
/* A copy of @graph, nodes of all kinds and all. */
struct sim_graph *graph_copy(enum object_kind kind, struct sim_graph *graph);
/* Nodes that no clone may have. */
bool graph_is_strange(const struct sim_graph *graph);
/* It has nodes that allocate or free. */
bool graph_has_memory(const struct sim_graph *graph);
/* A node of a graph has allocated it. */
bool graph_is_memory(uint64_t address);
/* What @graph is a body in, or itself. */
struct sim_graph *graph_whole(struct sim_graph *graph);
/* Graph @i inside @node, a child or a body; NULL: there is none. */
struct sim_graph *graph_inner(const struct sim_node *node, unsigned i);
void graph_add_bodies(struct sim_node *node, unsigned count);
/* What cudaGraphSetConditional() does in device code, in @graph, which runs. */
void graph_set_condition(struct sim_graph *graph, uint64_t handle, unsigned value);
struct sim_node *graph_add(struct sim_graph *graph, int type, const union graph_params *params);
void graph_add_edge(struct sim_node *to, struct sim_node *from, uint64_t data);
/* 0, or what is wrong with the parameters; arguments of kernels are copied. */
int graph_set_params(
	struct sim_node *node, const union graph_params *params, const char *function);
/* user_objects.c. @to has as many references as @from, too; @graph has none any more, when it has run. */
void graph_copy_references(struct sim_graph *to, const struct sim_graph *from);
void graph_drop_references(struct sim_graph *graph);
/* @to has those of @from in place of its own. */
void graph_exchange_references(struct sim_graph *to, const struct sim_graph *from);
bool graph_is_clone(const struct sim_node *node, const struct sim_node *original);
/* The place of @node in its graph. */
size_t graph_number(const struct sim_node *node);
struct sim_node *graph_node(const struct sim_graph *graph, size_t number);

/*
 * capture.c. What is queued on a stream that is being captured becomes a node instead: 1 and
 * *@result, or 0: it is not being captured.
 */
int capture_work(void *stream, int type, const union graph_params *params, int *result);
int capture_record(void *event, void *stream, int *result);
int capture_wait(void *event, void *stream, int *result);
/* The event has been recorded for real, or is no more. */
void capture_forget_event(void *event);
int capture_is_active(void *stream);

#endif
