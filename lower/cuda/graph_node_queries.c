/* What the driver says of nodes: who they are, and what they depend on. */
#include <stdlib.h>

#include "lower/cuda/saved_graphs.h"

/* Access policy window, cooperative, cluster dimension and policy, priority, domain map and
 * domain, preferred cluster dimension, updatable by the device, carveout, use of NVLink: those
 * of a node. Others are of launches and become edges or nodes. */
static const unsigned char attributes[GRAPH_ATTRIBUTES] = {[1] = 1,
	[2] = 1,
	[4] = 1,
	[5] = 1,
	[8] = 1,
	[9] = 1,
	[10] = 1,
	[11] = 1,
	[13] = 1,
	[14] = 1,
	[16] = 1};

int graph_is_attribute(int id)
{
	return id >= 0 && id < GRAPH_ATTRIBUTES && attributes[id];
}

int graph_nodes(void *graph, void ***nodes, size_t *count)
{
	int r;

	*nodes = NULL;
	*count = 0;
	r = CUDA(cuGraphGetNodes, (void *, void **, size_t *))(graph, NULL, count);
	if (r || !*count)
		return r ? cuda_failed("cuGraphGetNodes", r) : 0;
	*nodes = calloc(*count, sizeof(void *));
	if (!*nodes)
		return agent_fail("no memory for the nodes of a CUDA graph");
	r = CUDA(cuGraphGetNodes, (void *, void **, size_t *))(graph, *nodes, count);
	return r ? cuda_failed("cuGraphGetNodes", r) : 0;
}

struct entry {
	const void *node;
	size_t number;
};

struct graph_index {
	size_t count;
	struct entry entries[];
};

static int by_node(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->node < y->node ? -1 : x->node > y->node;
}

struct graph_index *graph_index_new(void *const *nodes, size_t count)
{
	struct graph_index *index = malloc(sizeof(*index) + count * sizeof(index->entries[0]));

	if (!index) {
		agent_fail("no memory for the nodes of a CUDA graph");
		return NULL;
	}
	index->count = count;
	for (size_t i = 0; i < count; i++)
		index->entries[i] = (struct entry){nodes[i], i};
	qsort(index->entries, count, sizeof(index->entries[0]), by_node);
	return index;
}

long graph_index_find(const struct graph_index *index, const void *node)
{
	const struct entry key = {.node = node};
	const struct entry *e =
		bsearch(&key, index->entries, index->count, sizeof(index->entries[0]), by_node);

	return e ? (long)e->number : -1;
}

void graph_index_free(struct graph_index *index)
{
	free(index);
}

/* A driver before 12.3 has edges without data. */
static int get_dependencies(void *node, void **list, uint64_t *edges, size_t *count)
{
	int r = CUDA(cuGraphNodeGetDependencies_v2, (void *, void **, uint64_t *, size_t *))(
		node, list, edges, count);

	if (r != CUDA_MISSING)
		return r;
	return CUDA(cuGraphNodeGetDependencies, (void *, void **, size_t *))(node, list, count);
}

static int ask_dependencies(void *node, void ***list, uint64_t **edges, size_t *count)
{
	int r;

	*count = 0;
	*list = NULL;
	*edges = NULL;
	r = get_dependencies(node, NULL, NULL, count);
	if (r || !*count)
		return r;
	*list = calloc(*count, sizeof(void *));
	*edges = calloc(*count, sizeof(uint64_t));
	return *list && *edges ? get_dependencies(node, *list, *edges, count) : 2;
}

long graph_edges(void *node, const struct graph_index *index, uint32_t **list, uint64_t **edges)
{
	void **nodes;
	size_t count;
	int r = ask_dependencies(node, &nodes, edges, &count);

	*list = r || !count ? NULL : calloc(count, sizeof(**list));
	for (size_t i = 0; *list && i < count && !r; i++) {
		long number = graph_index_find(index, nodes[i]);

		(*list)[i] = number;
		r = number < 0;
	}
	free(nodes);
	return r || (count && !*list) ? cuda_failed("cuGraphNodeGetDependencies", r)
				      : (long)count;
}
