/* Contexts of the copies in graphs, which the driver does not tell. */
#include "lower/cuda/saved_graphs.h"
#include "shared/cuda/array_params.h"

#define DEVICE_ORDINAL 9 /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */

static void *only_context(const struct cuda_state *s, int device)
{
	void *found = NULL;

	for (const struct object *o = s->objects; o; o = o->next) {
		if (o->kind != CUDA_CONTEXT || (device >= 0 && cuda_device_of(o) != device))
			continue;
		if (found)
			return NULL;
		found = o->real;
	}
	return found;
}

static int device_at(uint64_t address)
{
	int device = -1;

	return CUDA(cuPointerGetAttribute, (void *, int, uint64_t))(
		       &device, DEVICE_ORDINAL, address)
		       ? -1
		       : device;
}

/* The context of an array, as the record has it: an object. */
static void *context_of_array(const struct graph_node *n)
{
	const struct graph_memcpy *c = &n->params.copy;

	if (n->type == GRAPH_MEMCPY && c->to.type == COPY_OF_ARRAY)
		return ((const struct object *)c->to.array)->context;
	if (n->type == GRAPH_MEMCPY && c->from.type == COPY_OF_ARRAY)
		return ((const struct object *)c->from.array)->context;
	return NULL;
}

static int device_of_copy(const struct graph_node *n)
{
	const struct graph_memcpy *c = &n->params.copy;

	if (n->type == GRAPH_MEMSET)
		return device_at(n->params.set.address);
	return device_at(c->to.type == GRAPH_HOST_MEMORY ? c->from.device : c->to.device);
}

/* The program has said it, of this node or of the one it was cloned from; or there is only one; or it
 * is that of the conditional node around, @around. */
static int find_context(const struct cuda_state *s, struct graph_node *n, void *around)
{
	const struct object *o =
		n->object ? n->object : graph_object(s, CUDA_GRAPH_NODE, n->origin);
	int device;

	n->context = o && o->value ? (void *)o->value : only_context(s, -1);
	if (n->context && graph_object(s, CUDA_CONTEXT, n->context))
		return 0;
	n->context = around ? around : context_of_array(n);
	if (n->context)
		return 0;
	device = device_of_copy(n);
	n->context = device < 0 ? NULL : only_context(s, device);
	return n->context ? 0
			  : agent_fail("it holds a CUDA graph with a copy node, and it is not "
				       "known to which of several contexts that belongs: such "
				       "a graph cannot be restored");
}

static int find_contexts(const struct cuda_state *s, const struct graph_record *g, void *around)
{
	int r = 0;

	for (uint64_t i = 0; i < g->count && !r; i++) {
		struct graph_node *n = &g->nodes[i];

		if (n->type == GRAPH_MEMCPY || n->type == GRAPH_MEMSET)
			r = find_context(s, n, around);
		for (uint64_t j = 0; j < n->inner_count && !r; j++)
			r = find_contexts(s, n->inner[j],
				n->conditional ? n->conditional->context : around);
	}
	return r;
}

int graph_find_contexts(const struct cuda_state *s, const struct graph_record *g)
{
	return find_contexts(s, g, NULL);
}
