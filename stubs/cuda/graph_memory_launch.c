/*
 * Executable graphs that allocate and free memory (graph_memory.c): whose memory it is, and what a launch of one waits for and
 * makes of it.
 */
#include "stubs/cuda/graph_memory.h"

#include "cuda.index.h"

#define AUTO_FREE 1 /* CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH */

STUB_HIDDEN int graph_memory_take(struct graph_state *state, struct object *graph)
{
	struct graph_memory_node *before = state->memory_nodes, **end = &state->memory_nodes;
	const struct graph_memory_node *n = graph_state(graph)->memory_nodes;

	state->memory_nodes = NULL;
	for (; n && !graph_memory_note_node(state, NULL, n->memory, n->size, n->frees);
		n = n->next)
		graph_memory_refer(n->memory);
	if (!n) {
		state->memory_from = graph;
		state->memory_from_sequence = graph->sequence;
		graph_memory_free_nodes(before);
		return 0;
	}
	while (*end)
		end = &(*end)->next;
	*end = before;
	return -1;
}

/* Without a free in between, memory cannot be allocated twice. */
static int may_launch(const struct graph_memory_node *list)
{
	for (const struct graph_memory_node *n = list; n; n = n->next)
		if (!n->frees && n->memory->live)
			return 0;
	return 1;
}

static void begin_life(struct graph_memory *m)
{
	m->references += m->id && !m->live;
	m->live += m->id != 0;
}

/* The list has another reference. */
static void end_one_life(struct graph_memory *m)
{
	m->references -= m->live == 1;
	m->live -= m->live != 0;
}

/* Once for each device. */
static void note_high_of(const struct graph_memory_node *list)
{
	uint32_t noted = 0;

	for (; list; list = list->next) {
		uint32_t device = list->memory->params.device;

		if (!(noted >> device & 1))
			graph_memory_note_high(device);
		noted |= 1u << device;
	}
}

/* Several nodes may have had the memory one after the other. */
static void launched(const struct graph_memory_node *list, int auto_free)
{
	uint64_t mask = state_lock();

	for (const struct graph_memory_node *n = list; n && auto_free; n = n->next)
		while (!n->frees && n->memory->live)
			end_one_life(n->memory);
	for (const struct graph_memory_node *n = list; n; n = n->next)
		if (!n->frees)
			begin_life(n->memory);
	note_high_of(list);
	for (const struct graph_memory_node *n = list; n; n = n->next)
		if (n->frees)
			end_one_life(n->memory);
	state_unlock(mask);
}

static int call_behind(unsigned index, const uint64_t *words)
{
	typedef int call(uint64_t, uint64_t, uint64_t, uint64_t);

	return ((call *)cuda_targets[index])(words[0], words[1], words[2], words[3]);
}

/* What is done with the memory elsewhere, in the order of another stream, comes before a launch. */
static int wait_for_marks(const struct graph_state *state, const void *stream)
{
	const struct graph_mark *waited = state->mark;
	int r = 0;

	for (const struct graph_memory_node *n = state->memory_nodes; n && !r; n = n->next) {
		const struct graph_mark *mark = n->memory->mark;

		if (!mark || mark == state->mark || mark == waited || !mark->event)
			continue;
		r = call_behind(
			INDEX_cuStreamWaitEvent, WORDS(WORD(stream), WORD(mark->event), 0));
		waited = mark;
	}
	return r;
}

static void mark_launch(struct graph_state *state, void *stream)
{
	struct graph_mark *mark;

	if (graph_mark_again(state->mark, stream, call_behind)) {
		mark = graph_mark_new(stream, call_behind);
		graph_mark_release(state->mark, call_behind);
		state->mark = mark;
	}
	for (const struct graph_memory_node *n = state->memory_nodes; n; n = n->next)
		graph_memory_set_mark(n->memory, state->mark, call_behind);
}

static int launch_with_memory(unsigned index, const struct object *o, void *stream)
{
	int (*launch)(void *, void *) = (int (*)(void *, void *))cuda_targets[index];
	int (*flags_of)(void *, uint64_t *) =
		(int (*)(void *, uint64_t *))cuda_targets[INDEX_cuGraphExecGetFlags];
	int (*capturing)(void *, int *) =
		(int (*)(void *, int *))cuda_targets[INDEX_cuStreamIsCapturing];
	struct graph_state *state = graph_state(o);
	uint64_t flags = 0;
	int status = 0, r = flags_of(o->real, &flags);

	if (!r)
		r = capturing(stream, &status);
	if (r)
		return r;
	if (status)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!(flags & AUTO_FREE) && !may_launch(state->memory_nodes))
		return CUDA_ERROR_INVALID_VALUE;
	r = wait_for_marks(state, stream);
	if (!r)
		r = launch(o->real, stream);
	if (r)
		return r;
	launched(state->memory_nodes, flags & AUTO_FREE);
	mark_launch(state, stream);
	return 0;
}

/* Runs behind the crossing. */
static int launch(unsigned index, void *executable, void *stream)
{
	const struct object *o = in_records_window((uintptr_t)executable) ? executable : NULL;

	executable = object_real(executable);
	stream = object_real(stream);
	if (is_dead(executable) || is_dead(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (o && o->kind == CUDA_GRAPH_EXEC && graph_state(o)->memory_nodes)
		return launch_with_memory(index, o,
			stream || index == INDEX_cuGraphLaunch ? stream : STREAM_PER_THREAD);
	return ((int (*)(void *, void *))cuda_targets[index])(executable, stream);
}

int inner_cuGraphLaunch(void *executable, void *stream)
{
	return launch(INDEX_cuGraphLaunch, executable, stream);
}

int inner_cuGraphLaunch_ptsz(void *executable, void *stream)
{
	return launch(INDEX_cuGraphLaunch_ptsz, executable, stream);
}
