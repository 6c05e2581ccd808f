/* Memory of the records for graphs: in chunks, which each checkpoint uses anew. */
#include <string.h>

#include "lower/cuda/saved_graphs.h"
#include "lower/records_alloc.h"

#define CHUNK (1ul << 20)

static struct graph_chunk *chunk_with(struct cuda_state *s, uint64_t size)
{
	struct graph_chunk *c = s->graph_chunks;
	uint64_t whole = size + sizeof(*c) > CHUNK ? size + sizeof(*c) : CHUNK;

	while (c && c->size - c->used < size)
		c = c->next;
	if (c)
		return c;
	c = records_alloc(whole);
	if (!c)
		return NULL;
	*c = (struct graph_chunk){s->graph_chunks, whole, sizeof(*c)};
	s->graph_chunks = c;
	return c;
}

void *graph_records_alloc(struct cuda_state *s, uint64_t size)
{
	struct graph_chunk *c;
	void *at;

	size = (size + 15) & ~15ul;
	c = chunk_with(s, size);
	if (!c) {
		agent_fail("no memory for records of CUDA graphs");
		return NULL;
	}
	at = (char *)c + c->used;
	c->used += size;
	return memset(at, 0, size);
}

void *graph_copy(struct cuda_state *s, const void *data, uint64_t size)
{
	void *at = graph_records_alloc(s, size);

	return at ? memcpy(at, data, size) : NULL;
}
