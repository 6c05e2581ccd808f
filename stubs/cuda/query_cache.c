/*
 * Questions that runtime libraries ask many times for each thing they do (PyTorch twelve times
 * a kernel): which context is the thread's current one, which device it is on, what they have
 * put beside it, and whether a device's primary context is there. Their answers are cached, and
 * given without a crossing (query_cache.inc).
 *
 * A cached answer bears a stamp: cuda_state.generation, which grows with each change that any thread
 * may make to a context or to what is put beside one; and, but for primary contexts, the
 * thread's own query_cache.generation, which grows with all that may change which context is its
 * current one: calls of class "thread" and functions without a name, behind the crossing. Both
 * only grow, so their sum is as it was when both are.
 *
 * Changes count before the driver makes them, so that a signal handler or a callback in the
 * middle asks the driver; and again behind it, for other threads that have asked meanwhile.
 * Calls in the middle of another one store no answers. Recorded calls that have to do with a
 * context count as changes, whether we know the context or not. After a function without a name
 * the driver is asked whether the context is the same, on the spot: that takes a fraction of a
 * crossing. What is put beside a context is taken to be changed by the functions of its own
 * table only. A child of fork has no answers: they are in pages that are wiped there.
 *
 * The driver answers all of them also after an error of the device that the program cannot get
 * over (seen with driver 580).
 */
#include "stubs/cuda/query_cache.h"

#include "stubs/cuda/objects.h"
#include "stubs/cuda/context_storage.h"

#include "cuda.index.h"

_Static_assert(sizeof(struct query_cache) <= CROSSING_WORDS * sizeof(uint64_t), "");
_Static_assert(offsetof(struct query_cache, generation) == QUERY_CACHE_GENERATION, "");
_Static_assert(offsetof(struct query_cache, updates) == QUERY_CACHE_UPDATES, "");
_Static_assert(offsetof(struct query_cache, device) == QUERY_CACHE_DEVICE, "");
_Static_assert(offsetof(struct query_cache, context) == QUERY_CACHE_CONTEXT, "");
_Static_assert(offsetof(struct query_cache, stored) == QUERY_CACHE_STORED, "");
_Static_assert(offsetof(struct answer, value) == ANSWER_VALUE, "");
_Static_assert(offsetof(struct answer, key) == ANSWER_KEY, "");
_Static_assert(sizeof(struct answer) == ANSWER_SIZE, "");

STUB_HIDDEN void query_cache_invalidate(void)
{
	if (state_usable())
		__atomic_add_fetch(&CUDA_STATE->generation, QUERY_CACHE_STEP, __ATOMIC_ACQ_REL);
}

/* Where the answer to what is asked of the driver from now on is stored, and with which stamp. */
struct question {
	struct query_cache *a; /* NULL: nowhere */
	uint64_t stamp;
};

static uint64_t generation_now(void)
{
	return __atomic_load_n(&CUDA_STATE->generation, __ATOMIC_ACQUIRE);
}

static struct question ask_with(struct query_cache *a)
{
	return (struct question){a, a ? generation_now() + a->generation + 1 : 0};
}

static struct question new_question(void)
{
	return ask_with(state_usable() ? (struct query_cache *)crossing_thread_words() : NULL);
}

/* In an order such that a handler of this thread never takes what is half written for an
 * answer, nor stores its own there: the rest would be written over that, to be seen by the next
 * handler. A handler that leaves by longjmp() from the middle of this leaves that answer unstored for
 * good. */
static void store_answer(struct question q, struct answer *at, void *value, void *key)
{
	const uint64_t bit = 1ull << ((uintptr_t)at - (uintptr_t)&q.a->context) / sizeof(*at);

	if (q.a->being_stored & bit)
		return;
	q.a->being_stored |= bit;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	q.a->updates++;
	at->stamp = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	at->value = value;
	at->key = key;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	at->stamp = q.stamp;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	q.a->being_stored &= ~bit;
}

static void store_device(struct question q, int device)
{
	if (q.a && (unsigned)device <= QUERY_CACHE_MAX)
		q.a->device = q.stamp + (unsigned)device;
}

int body_cuCtxGetDevice(int *device)
{
	struct question q = new_question();
	int r = real_cuCtxGetDevice(device);

	if (!r && device)
		store_device(q, *device);
	return r;
}

int body_cuCtxGetDevice_v2(int *device, void *context)
{
	struct question q = new_question();
	int r = real_cuCtxGetDevice_v2(device, context);

	if (!r && device && !context)
		store_device(q, *device);
	return r;
}

int body_cuCtxGetCurrent(void **context)
{
	struct question q = new_question();
	int r = real_cuCtxGetCurrent(context);

	if (!r && context && q.a)
		store_answer(q, &q.a->context, *context, NULL);
	return r;
}

static struct answer *place_for(struct query_cache *a, const void *key)
{
	for (int i = 0; i < QUERY_CACHE_STORED_COUNT; i++)
		if (a->stored[i].key == key)
			return &a->stored[i];
	return &a->stored[a->updates % QUERY_CACHE_STORED_COUNT];
}

int body_storage_get(void **value, void *context, void *key)
{
	struct question q = new_question();
	int r = real_storage_get(value, context, key);

	if (!r && value && !context && q.a)
		store_answer(q, place_for(q.a, key), *value, key);
	return r;
}

STUB_HIDDEN void query_cache_ask_driver(struct crossing_thread *t)
{
	int (*get_current)(void **) = (int (*)(void **))cuda_targets[INDEX_cuCtxGetCurrent];
	int (*get_device)(int *) = (int (*)(int *))cuda_targets[INDEX_cuCtxGetDevice];
	struct query_cache *a = (struct query_cache *)t->words;
	struct question q;
	uint64_t before;
	void *context;
	int device;

	if (!crossing_is_outermost(t))
		return;
	q = ask_with(a);
	before = q.stamp - QUERY_CACHE_STEP; /* unless there was another change */
	if (get_current(&context) || get_device(&device))
		return;
	if (a->context.stamp == before && a->context.value == context)
		for (int i = 0; i < QUERY_CACHE_STORED_COUNT; i++)
			if (a->stored[i].stamp == before)
				a->stored[i].stamp = q.stamp;
	store_answer(q, &a->context, context, NULL);
	store_device(q, device);
}

int body_cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	uint64_t stamp = state_usable() ? generation_now() + 1 : 0;
	int r = real_cuDevicePrimaryCtxGetState(device, flags, active);

	/* A context that is not there may be made by calls that do not come by here. */
	if (!r && flags && active && *active && *flags <= QUERY_CACHE_MAX && stamp &&
		(unsigned)device < CUDA_DEVICES)
		__atomic_store_n(
			&CUDA_STATE->primaries[device], stamp + *flags, __ATOMIC_RELEASE);
	return r;
}
