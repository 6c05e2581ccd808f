/* external.h - memory and semaphores of other interfaces: files, which descriptors name. */
#ifndef T_SIM_EXTERNAL_H
#define T_SIM_EXTERNAL_H

#include "shared/cuda/graph_params.h"

/* All that goes with a context. */
void external_context_gone(const void *context);

/* @size bytes of a live external memory object from @offset on, mapped; NULL: it has not as many. */
void *external_map(void *memory, uint64_t offset, uint64_t size, const char *function);

/* What a node, of type @type, is to do: checked and copied to @to. 0, or what is wrong. */
int external_set_node(int type, struct graph_semaphores *to,
	const struct graph_semaphores *from, const char *function);
/* It is queued. */
int external_queue(
	int type, const struct graph_semaphores *params, void *stream, const char *function);

#endif
