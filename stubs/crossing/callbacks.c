/*
 * Functions that the halves call in each other's stead: callbacks of the program, which the
 * driver calls from threads of either half, and functions of the driver without a name.
 */
#include <pthread.h>
#include <signal.h>

#include "shared/raw.h"
#include "shared/records.h"
#include "stubs/crossing/internal.h"

#define THUNK_SIZE 16

/* crossing.S */
extern HIDDEN char crossing_callback_thunks[], crossing_function_thunks[];
HIDDEN void *crossing_callback_functions[CALLBACKS];
HIDDEN void *crossing_function_targets[FUNCTIONS];

/* The thunk whose word in @words is @value, taking a new one if need be: none is given back, so
 * it is the first from where its value says that is or is free. NULL: all in use. */
static void *thunk_for(void *value, void **words, unsigned count, char *thunks)
{
	uint64_t mask = busy_begin();
	unsigned start = (uintptr_t)value * 0x9e3779b97f4a7c15 >> 40;
	void *thunk = NULL;

	raw_lock(&process_get()->thunks_lock);
	for (unsigned n = 0; n < count && !thunk; n++) {
		unsigned i = (start + n) % count;

		if (words[i] && words[i] != value)
			continue;
		words[i] = value;
		thunk = thunks + i * THUNK_SIZE;
	}
	raw_unlock(&process_get()->thunks_lock);
	busy_end(mask);
	return thunk;
}

HIDDEN void *callbacks_thunk(void *function)
{
	return thunk_for(
		function, crossing_callback_functions, CALLBACKS, crossing_callback_thunks);
}

void *crossing_callback_function(void *pointer)
{
	uintptr_t offset = (char *)pointer - crossing_callback_thunks;

	return offset < CALLBACKS * THUNK_SIZE
		       ? crossing_callback_functions[offset / THUNK_SIZE]
		       : pointer;
}

void *crossing_function(void *real)
{
	return thunk_for(real, crossing_function_targets, FUNCTIONS, crossing_function_thunks);
}

void **crossing_function_word(void *thunk)
{
	return &crossing_function_targets[((char *)thunk - crossing_function_thunks) /
					  THUNK_SIZE];
}

/* ---- the helper thread ---- */

static struct lower_callback *oldest_first(struct lower_callback *newest)
{
	struct lower_callback *list = NULL, *next;

	for (; newest; newest = next) {
		next = newest->next;
		newest->next = list;
		list = newest;
	}
	return list;
}

static void *serve_callbacks(void *argument)
{
	struct lower_table *table = argument;

	/* From now on it is not stopped for a checkpoint before the lower half has come to
	 * rest, and not while it makes a call. */
	RECORDS->helper = raw(SYS_gettid);
	for (;;) {
		uint32_t bell = __atomic_load_n(&table->callback_bell, __ATOMIC_ACQUIRE);
		struct lower_callback *call;

		crossing_busy = 1;
		call = oldest_first(
			__atomic_exchange_n(&table->callbacks, NULL, __ATOMIC_ACQ_REL));

		while (call) {
			struct lower_callback *next = call->next;
			long *a = call->args;

			call->result = call->function(a[0], a[1], a[2], a[3], a[4], a[5]);
			raw_set_and_wake(&call->done, 1); /* and it is gone */
			call = next;
		}
		crossing_busy = 0;
		raw_wait(&table->callback_bell, bell);
	}
	return NULL;
}

/* The helper takes no signals: the program does not know of it. */
static int callbacks_start_helper(void)
{
	struct process *p = process_get();
	sigset_t all, old;
	pthread_t thread;
	int r = 0;

	if (process_bring_up() < 0)
		return 0; /* nobody will call */
	if (__atomic_exchange_n(&p->helper, 1, __ATOMIC_ACQ_REL))
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, NULL, serve_callbacks, p->table);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!r)
		pthread_detach(thread);
	return r ? -1 : 0;
}

/* ---- callbacks on their way down ---- */

void *crossing_callback_pointer(void *function)
{
	void *thunk;

	if (!function || crossing_callback_function(function) != function)
		return function;
	thunk = callbacks_thunk(function);
	if (!thunk || callbacks_start_helper() < 0) {
		/* The driver must not get a pointer that it would call on the wrong storage. */
		raw_complain("too many different callbacks");
		__builtin_trap();
	}
	return thunk;
}

/* For crossing_callback: of a call's @arguments on their way down: of a callback, a
 * bit each. */
HIDDEN void crossing_exchange(void **arguments, unsigned callbacks);

HIDDEN void crossing_exchange(void **arguments, unsigned callbacks)
{
	for (; callbacks; arguments++, callbacks >>= 1)
		if (callbacks & 1)
			*arguments = crossing_callback_pointer(*arguments);
}
