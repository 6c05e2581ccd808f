/*
 * Calls about graphs. Graphs, their nodes and executable graphs are handed to the program as
 * the addresses of records, made when it is first given a handle: a graph that was captured may
 * have thousands of nodes that nobody asks for.
 *
 * Nothing is recorded of how a graph was made: at a checkpoint the driver is asked
 * (lower/cuda/graph_save.c).
 */
#include "stubs/cuda/graphs.h"

#include "shared/raw.h"

#include "cuda.index.h"

struct graph_call {
	const struct call_info *info;
	const uint64_t *given; /* as the program gave them */
	uint64_t words[CALL_WORDS];
	/* By parameter: copies of arrays; and handles that come out, as they were and are. */
	void **copies[CALL_WORDS];
	void *before[CALL_WORDS], *out[CALL_WORDS];
};

static int is_graph_kind(uint32_t kind)
{
	return kind == CUDA_GRAPH || kind == CUDA_GRAPH_EXEC || kind == CUDA_GRAPH_NODE;
}

STUB_HIDDEN int graph_concerns(const struct call_info *info)
{
	for (unsigned i = 0; i < info->param_count; i++)
		if (is_graph_kind(info->params[i].object))
			return 1;
	return 0;
}

/* ---- objects ---- */

STUB_HIDDEN struct object *graph_argument(enum cuda_kind kind, void *handle)
{
	if (in_records_window((uintptr_t)handle))
		return handle;
	return handle ? object_find(kind, handle) : NULL;
}

static struct object *graph_new(enum cuda_kind kind)
{
	struct object *o = object_new(kind, 0);
	struct graph_state *state =
		o && kind != CUDA_GRAPH_NODE ? block_new(sizeof(*state)) : NULL;

	if (o && kind != CUDA_GRAPH_NODE && !state) {
		object_drop(o);
		return NULL;
	}
	if (o)
		o->value = (uint64_t)state;
	return o;
}

/* @o, which has lost a race with another thread, or came first. */
static struct object *graph_live(struct object *o, void *real)
{
	struct graph_state *state = graph_state(o);
	struct object *living = object_live_once(o, real);

	if (living != o && state)
		block_free(state, sizeof(*state));
	return living;
}

static void *held_handle(struct object *o)
{
	return o->flags & CUDA_OBJECT_REAL ? o->real : o;
}

STUB_HIDDEN struct object *graph_object(void *real)
{
	struct object *o = object_find(CUDA_GRAPH, real);

	if (o)
		return o;
	o = graph_new(CUDA_GRAPH);
	return o ? graph_live(o, real) : NULL;
}

/* What is part of something that is not known stays the driver's own. */
STUB_HIDDEN void *graph_raise(enum cuda_kind kind, void *real, struct object *whole)
{
	struct object *o = real ? object_find(kind, real) : NULL;

	if (!o && real && whole && is_graph_kind(kind)) {
		o = graph_new(kind);
		if (!o)
			return real;
		o->parent = whole;
		o = graph_live(o, real);
	}
	return o ? held_handle(o) : real;
}

STUB_HIDDEN void graph_lose(struct object *o, enum graph_reason reason)
{
	for (; o; o = o->parent) {
		if (o->kind == CUDA_GRAPH_NODE)
			continue;
		if (!graph_state(o)->reason)
			graph_state(o)->reason = reason;
		__atomic_or_fetch(&o->flags, CUDA_OBJECT_LOST, __ATOMIC_RELAXED);
	}
}

STUB_HIDDEN void *graph_find_pair(const struct graph_state *state, const void *node)
{
	if (!graph_origin(state))
		return NULL;
	for (uint64_t i = 0; i < state->pair_count; i++)
		if (state->pairs[i].from == node)
			return state->pairs[i].to;
	return NULL;
}

/* ---- arguments ---- */

static const struct call_param *find_param(const struct call_info *info, enum cuda_kind kind)
{
	for (unsigned i = 0; i < info->param_count; i++)
		if (!info->params[i].stars && info->params[i].object == kind)
			return &info->params[i];
	return NULL;
}

static struct object *find_object(const struct graph_call *c, enum cuda_kind kind)
{
	const struct call_param *p = find_param(c->info, kind);

	return p ? graph_argument(kind, (void *)c->given[p->word]) : NULL;
}

static uint64_t count_of(const struct graph_call *c, const struct call_param *p)
{
	return c->given[p->word] ? call_bytes(c->info, p, c->given) / sizeof(void *) : 0;
}

static int is_handles(const struct call_param *p, enum api_direction direction)
{
	return p->stars == 1 && p->holding == API_VIRTUAL && p->direction == direction;
}

/* An array of the program's handles, as the driver's. */
static int lower_array(struct graph_call *c, unsigned i)
{
	const struct call_param *p = &c->info->params[i];
	void *const *from = (void *const *)c->given[p->word];
	uint64_t count = count_of(c, p);

	if (!count)
		return 0;
	c->copies[i] = block_new(count * sizeof(void *));
	if (!c->copies[i])
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint64_t j = 0; j < count; j++) {
		c->copies[i][j] = object_real(from[j]);
		if (is_dead(c->copies[i][j]))
			return CUDA_ERROR_INVALID_VALUE;
	}
	c->words[p->word] = (uint64_t)c->copies[i];
	return 0;
}

/* One handle that comes out, perhaps: of a node that has failed. */
static void lower_out(struct graph_call *c, unsigned i)
{
	const struct call_param *p = &c->info->params[i];
	void **to = (void **)c->given[p->word];

	if (p->length_kind != API_ONE || !to)
		return;
	c->before[i] = c->out[i] = *to;
	c->words[p->word] = (uint64_t)&c->out[i];
}

static int lower_call(struct graph_call *c)
{
	int r = 0;

	if (call_lower(c->info, c->given, c->words) < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; i < c->info->param_count && !r; i++) {
		if (is_handles(&c->info->params[i], API_IN))
			r = lower_array(c, i);
		if (is_handles(&c->info->params[i], API_OUT))
			lower_out(c, i);
	}
	return r;
}

static void free_copies(const struct graph_call *c)
{
	for (unsigned i = 0; i < c->info->param_count; i++)
		if (c->copies[i])
			block_free(c->copies[i],
				count_of(c, &c->info->params[i]) * sizeof(void *));
}

/* ---- results ---- */

/* What nodes and graphs that come out of a call are part of. */
static struct object *whole_of(const struct graph_call *c, enum cuda_kind kind)
{
	struct object *graph = find_object(c, CUDA_GRAPH), *node;

	if (graph)
		return graph;
	node = find_object(c, CUDA_GRAPH_NODE);
	return kind == CUDA_GRAPH ? node : node ? node->parent : NULL;
}

/* A graph of its own, or an executable one. */
static void *raise_new(struct graph_call *c, enum cuda_kind kind, void *real)
{
	struct object *o, *from = find_object(c, CUDA_GRAPH);

	if (kind == CUDA_GRAPH) {
		o = graph_object(real);
		if (o && from) {
			graph_state(o)->origin = from;
			graph_state(o)->origin_sequence = from->sequence;
		}
		if (o && from && from->flags & CUDA_OBJECT_LOST)
			graph_lose(o, graph_state(from)->reason);
		if (o && from)
			user_objects_cloned(o, from);
		return o ? held_handle(o) : real;
	}
	o = graph_new(kind);
	if (!o)
		return real;
	object_live(o, real);
	graph_instantiated(o, from);
	return o;
}

static int is_whole(const struct graph_call *c, enum cuda_kind kind)
{
	return c->info->class == API_CREATE &&
	       (kind == CUDA_GRAPH_EXEC ||
		       (kind == CUDA_GRAPH && !find_param(c->info, CUDA_GRAPH_NODE)));
}

/* The context of a copy, which the driver does not tell. */
static void note_context(const struct graph_call *c, void *node)
{
	const struct call_param *context = find_param(c->info, CUDA_CONTEXT);

	if (context && in_records_window((uintptr_t)node))
		((struct object *)node)->value = c->words[context->word];
}

static void raise_one(struct graph_call *c, unsigned i)
{
	const struct call_param *p = &c->info->params[i];

	*(void **)c->given[p->word] =
		!c->out[i] ? NULL
		: is_whole(c, p->object)
			? raise_new(c, p->object, c->out[i])
			: graph_raise(p->object, c->out[i], whole_of(c, p->object));
	if (p->object == CUDA_GRAPH_NODE && c->info->class == API_CREATE)
		note_context(c, *(void **)c->given[p->word]);
}

static void raise_array(struct graph_call *c, const struct call_param *p)
{
	void **handles = (void **)c->given[p->word];
	uint64_t count = count_of(c, p);

	for (uint64_t i = 0; i < count; i++)
		handles[i] = graph_raise(p->object, handles[i], whole_of(c, p->object));
}

static void raise_call(struct graph_call *c, int r)
{
	for (unsigned i = 0; i < c->info->param_count; i++) {
		const struct call_param *p = &c->info->params[i];

		if (!is_handles(p, API_OUT) || !c->given[p->word])
			continue;
		if (p->length_kind == API_ONE && (!r || c->out[i] != c->before[i]))
			raise_one(c, i);
		if (p->length_kind == API_DEREFERENCED && !r)
			raise_array(c, p);
	}
}

/* ---- nodes and graphs that are no more ---- */

/* Nodes that go together: one, and those of the graphs inside it. */
struct gone_nodes {
	struct object *graph; /* that the one is in */
	void *node;           /* that one */
	void **list;          /* NULL: they are only counted */
	uint64_t count, room;
};

static void list_inside(struct gone_nodes *n, void *node);

static void list_node(struct gone_nodes *n, void *node)
{
	if (n->list && n->count < n->room)
		n->list[n->count] = node;
	n->count++;
	list_inside(n, node);
}

static void list_graph(struct gone_nodes *n, void *graph)
{
	struct graph_list nodes;

	if (!graph_list_nodes(graph, &nodes))
		for (size_t i = 0; i < nodes.count; i++)
			list_node(n, nodes.list[i]);
	graph_free_list(&nodes);
}

static void list_inside(struct gone_nodes *n, void *node)
{
	struct graph_conditional *list = graph_state(graph_whole(n->graph))->conditionals,
				 *c = NULL;
	int type = graph_node_type(node);

	if (type == GRAPH_CHILD)
		list_graph(n, graph_child(node));
	if (type == GRAPH_CONDITIONAL)
		c = graph_conditional(list, node);
	for (uint32_t i = 0; c && i < c->count; i++)
		list_graph(n, *graph_body(c, i));
}

/* Before @o goes. Without memory for the others: only that one. */
static void list_gone(struct gone_nodes *n, const struct object *o)
{
	*n = (struct gone_nodes){.node = o->real};
	if (o->kind != CUDA_GRAPH_NODE || !o->parent || o->parent->kind != CUDA_GRAPH)
		return;
	n->graph = o->parent;
	list_node(n, o->real);
	n->room = n->count;
	n->count = 0;
	n->list = block_new(n->room * sizeof(void *));
	if (n->list)
		list_node(n, o->real);
}

static void free_gone(const struct gone_nodes *n)
{
	if (n->list)
		block_free(n->list, n->room * sizeof(void *));
}

static int is_gone(const struct gone_nodes *n, const void *node)
{
	for (uint64_t i = 0; n->list && i < n->count; i++)
		if (n->list[i] == node)
			return 1;
	return node == n->node;
}

/* Their places may be other nodes' soon. */
static void forget_pairs(const struct gone_nodes *n)
{
	uint64_t mask = state_lock();

	for (struct object *o = CUDA_STATE->objects; o; o = o->next) {
		struct graph_state *state = o->kind == CUDA_GRAPH || o->kind == CUDA_GRAPH_EXEC
						    ? graph_state(o)
						    : NULL;

		for (uint64_t i = 0; state && i < state->pair_count; i++)
			if (is_gone(n, state->pairs[i].from) || is_gone(n, state->pairs[i].to))
				state->pairs[i--] = state->pairs[--state->pair_count];
	}
	state_unlock(mask);
}

static int destroy_graph_object(struct graph_call *c)
{
	const struct call_param *first = call_first_handle(c->info);
	struct object *o = graph_argument(first->object, (void *)c->given[first->word]);
	struct object *part_of = o ? o->parent : NULL;
	void *real = o ? o->real : NULL;
	struct gone_nodes gone;
	int r;

	if (!o)
		return cuda_call_down(c->info - cuda_info, c->words);
	list_gone(&gone, o);
	/* Before the driver may give their handles out again, to another thread. */
	object_set_going(o, 1);
	r = cuda_call_down(c->info - cuda_info, c->words);
	if (r)
		object_set_going(o, 0);
	if (!r && o->kind == CUDA_GRAPH_NODE) {
		forget_pairs(&gone);
		graph_memory_node_gone(part_of, real);
	}
	free_gone(&gone);
	if (r)
		return r;
	if (o->kind == CUDA_GRAPH_EXEC)
		graph_exec_gone(graph_state(o));
	object_kill(o);
	if (first->object == CUDA_GRAPH_NODE)
		graph_conditionals_gone(part_of);
	return 0;
}

/* ---- calls ---- */

/* Found in what the driver does not know for a clone. */
static int find_restored(struct graph_call *c, struct object *clone)
{
	const struct call_param *node = find_param(c->info, CUDA_GRAPH_NODE);
	void *found = graph_find_pair(graph_state(clone), (void *)c->words[node->word]);
	void **to = (void **)c->given[0];

	if (!found || !to)
		return CUDA_ERROR_INVALID_VALUE;
	*to = graph_raise(CUDA_GRAPH_NODE, found, clone);
	return 0;
}

/* What the driver knows a node of an executable's graph by. */
static int lower_exec_node(struct graph_call *c, const struct object *exec)
{
	const struct call_param *node = find_param(c->info, CUDA_GRAPH_NODE);
	void *pair;

	if (!exec || !node || !graph_state(exec)->restarted)
		return 0;
	pair = graph_find_pair(graph_state(exec), (void *)c->words[node->word]);
	if (!pair)
		return CUDA_ERROR_INVALID_VALUE;
	c->words[node->word] = (uint64_t)pair;
	return 0;
}

static int go_down(struct graph_call *c)
{
	unsigned index = c->info - cuda_info;
	struct object *exec = find_object(c, CUDA_GRAPH_EXEC), *graph;
	int r;

	graph = find_object(c, CUDA_GRAPH);
	if (index == INDEX_cuGraphNodeFindInClone && graph && graph_state(graph)->restarted)
		return find_restored(c, graph);
	if (c->info->class == API_DESTROY)
		return destroy_graph_object(c);
	r = lower_exec_node(c, exec);
	if (!r)
		r = cuda_call_down(index, c->words);
	if (!r && exec && c->info->class == API_STATE)
		graph_follow(exec, index, c->words, graph);
	raise_call(c, r);
	return r;
}

static struct object *child_of(const struct graph_call *c)
{
	const struct call_param *last = &c->info->params[c->info->param_count - 1];

	return c->info - cuda_info == INDEX_cuGraphAddChildGraphNode
		       ? graph_argument(CUDA_GRAPH, (void *)c->given[last->word])
		       : NULL;
}

/* A child with what cannot be restored hands that on. */
static void child_added(const struct graph_call *c)
{
	const struct object *child = child_of(c);

	if (child && child->flags & CUDA_OBJECT_LOST)
		graph_lose(find_object(c, CUDA_GRAPH), graph_state(child)->reason);
	if (child)
		user_objects_in_child(*(void **)c->given[0], child);
}

STUB_HIDDEN int graph_call(unsigned index, const uint64_t *arguments)
{
	struct graph_call c = {.info = &cuda_info[index], .given = arguments};
	int r;

	if (!state_usable())
		return cuda_call_down(index, arguments); /* which will say why not */
	r = graph_memory_check(c.info, arguments);
	if (!r)
		r = lower_call(&c);
	if (!r)
		r = go_down(&c);
	if (!r)
		child_added(&c);
	free_copies(&c);
	return r;
}
