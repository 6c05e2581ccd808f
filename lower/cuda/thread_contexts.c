/*
 * What the driver knows of each thread of the upper half: its stack of contexts. The driver
 * keeps it in the thread-local storage that the thread borrows, so this thread takes that on
 * for a moment.
 */
#include "lower/cuda/context_replay.h"
#include "lower/cuda/cuda.h"
#include "lower/records_alloc.h"
#include "shared/raw.h"

#define NO_CONTEXT 201 /* CUDA_ERROR_INVALID_CONTEXT: none is left */

/* Functions that are called on borrowed storage, found before. */
struct stack_functions {
	int (*push)(void *);
	int (*pop)(void **);
	int (*mode)(int *);
};

static struct stack_functions find_functions(void)
{
	return (struct stack_functions){
		.push = CUDA(cuCtxPushCurrent_v2, (void *)),
		.pop = CUDA(cuCtxPopCurrent_v2, (void **)),
		.mode = CUDA(cuThreadExchangeStreamCaptureMode, (int *)),
	};
}

static int push_all(const struct stack_functions *f, const struct cuda_thread *t)
{
	int r = 0;

	for (unsigned i = 0; i < t->depth && !r; i++)
		r = f->push(t->contexts[i]);
	return r;
}

/* There is no asking but to set another, and then the first again. */
static int look_at_mode(const struct stack_functions *f, struct cuda_thread *t)
{
	int mode = 0, r = f->mode(&mode);

	t->capture_mode = r ? 0 : mode;
	if (r)
		return r == CUDA_MISSING ? 0 : r; /* a driver before 10.1 */
	return f->mode(&mode);
}

/* There is no asking for more than the current context but to take it off. */
static int look_at_stack(const struct stack_functions *f, struct cuda_thread *t)
{
	void *popped[CUDA_STACK];
	unsigned depth = 0;
	int r = 0, end = 0, pushed;

	while (depth < CUDA_STACK && !(end = f->pop(&popped[depth])))
		depth++;
	t->depth = depth;
	for (unsigned i = 0; i < depth; i++)
		t->contexts[i] = popped[depth - 1 - i];
	if (end && end != NO_CONTEXT)
		r = end;
	if (!r)
		r = look_at_mode(f, t);
	pushed = push_all(f, t);
	return r ? r : pushed;
}

static int put_stack(const struct stack_functions *f, struct cuda_thread *t)
{
	int mode = t->capture_mode, r = push_all(f, t);

	return r || !mode ? r : f->mode(&mode);
}

static int on_storage(const struct lower_parked *p, const struct stack_functions *f,
	int (*act)(const struct stack_functions *, struct cuda_thread *), struct cuda_thread *t)
{
	uint64_t own = raw_read_fs();
	int r;

	raw_write_fs(p->fs);
	r = act(f, t);
	raw_write_fs(own);
	return r;
}

int cuda_save_threads(struct cuda_state *s)
{
	struct stack_functions f = find_functions();
	int r = 0;

	s->thread_count = 0;
	for (struct lower_parked *p = parked_first(); p && !r; p = p->next) {
		struct cuda_thread *t;

		if (!*p->upper_slot)
			continue;
		if (records_reserve((void **)&s->threads, &s->thread_room, s->thread_count + 1,
			    sizeof(*t)))
			return agent_fail("no memory for the contexts of threads");
		t = &s->threads[s->thread_count++];
		t->thread = *p->upper_slot;
		r = on_storage(p, &f, look_at_stack, t);
		if (t->depth == CUDA_STACK)
			return agent_fail("a thread has more than %d contexts on its stack",
				CUDA_STACK - 1);
	}
	return r ? cuda_failed("looking at a thread's contexts", r) : 0;
}

static struct cuda_thread *find_thread(struct cuda_state *s, const void *thread)
{
	for (uint64_t i = 0; i < s->thread_count; i++)
		if (s->threads[i].thread == thread)
			return &s->threads[i];
	return NULL;
}

static int give_stacks(struct cuda_state *s, struct place_takers *takers)
{
	struct stack_functions f = find_functions();

	for (struct lower_parked *p = parked_first(); p; p = p->next) {
		struct cuda_thread *t = *p->upper_slot ? find_thread(s, *p->upper_slot) : NULL;
		int r;

		for (unsigned i = 0; t && i < t->depth; i++)
			if (context_take_gone(s, takers, t->contexts[i]))
				return -1;
		r = t ? on_storage(p, &f, put_stack, t) : 0;
		if (r)
			return cuda_failed("giving a thread its contexts", r);
	}
	return 0;
}

/* A context that has been destroyed stays on the stacks of threads. */
int cuda_replay_threads(struct cuda_state *s)
{
	struct place_takers takers = {0};
	int r = give_stacks(s, &takers);

	context_end_takers(&takers);
	return r;
}
