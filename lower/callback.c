/* Calls of upper functions by the lower half's own threads: handed to the upper half's helper
 * thread, as upper code must run on a thread of the upper libc. */
#include "lower/runtime.h"
#include "shared/raw.h"

long callback_post(void *function, const long args[6])
{
	struct lower_callback call = {.function = function};

	raw_copy(call.args, args, sizeof(call.args));
	call.next = __atomic_load_n(&table->callbacks, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
		&table->callbacks, &call.next, &call, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	__atomic_add_fetch(&table->callback_bell, 1, __ATOMIC_RELEASE);
	raw_wake(&table->callback_bell);
	raw_wait(&call.done, 0);
	return call.result;
}
