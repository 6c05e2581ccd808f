/*
 * The plan of one new process put together: which batches the loader is to run in it, made of
 * what memory/memory_restore.c and state/process_restore.c add to them.
 */
#include "supervisor/restore/loader_plan.h"

#include <stdlib.h>

#include "supervisor/memory/memory_restore.h"
#include "supervisor/memory/sysv_attach.h"

/* A batch less is a stop less. Not where memory is made lazy between the two, and where threads fill it, which is
 * done by one process at a time. */
static void join_fill(struct restore_plan *p)
{
	if (p->lazy || p->fill_threads || p->fill[0].copier)
		return;
	buf_add(&p->memory.calls, p->fill[0].calls.data, p->fill[0].calls.len);
	buf_add(&p->memory.what, p->fill[0].what.data, p->fill[0].what.len);
	p->filled_at_once = true;
}

int restore_plan_make(struct restore_plan *p, struct err *e)
{
	if (!p->owned_elsewhere[IMAGE_SHARED_MEMORY]) {
		if (restore_plan_memory(p, e))
			return -1;
		restore_plan_segment_modes(p);
	}
	if (restore_plan_undos(p, p->ip->pid, e) || restore_plan_process(p, e))
		return -1;
	join_fill(p);
	p->memory_at = plan_batch(&p->plan, &p->memory, BATCH_TRAP);
	if (!p->filled_at_once)
		p->fill_at[0] = plan_batch(&p->plan, &p->fill[0], BATCH_TRAP);
	p->rest_at = plan_batch(&p->plan, &p->rest, BATCH_TRAP);
	p->stack = plan_stack(&p->plan, 16384, 0);
	p->scratch = plan_data(&p->plan, (const uint64_t[2]){0}, 16);
	return 0;
}

void restore_plan_free(struct restore_plan *p)
{
	buf_free(&p->plan.data);
	buf_free(&p->lazy_ranges);
	buf_free(&p->copied);
	buf_free(&p->inherited.regions);
	buf_free(&p->inherited.same);
	buf_free(&p->inherited.other);
	batch_free(&p->memory);
	batch_free(&p->rest);
	for (unsigned i = 0; i < FILL_THREADS_MAX; i++)
		batch_free(&p->fill[i]);
	for (size_t i = 0; i < p->thread_count; i++)
		batch_free(&p->threads[i]);
	free(p->threads);
	free(p->thread_at);
}
