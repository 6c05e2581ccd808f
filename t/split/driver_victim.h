/* driver_victim.h - for victims (t/victim/victim.h) that call the driver. */
#ifndef T_SPLIT_DRIVER_VICTIM_H
#define T_SPLIT_DRIVER_VICTIM_H

#include "t/split/cuda_api.h"
#include "t/victim/victim.h"

/* A call that is preparation (see MUST). */
#define WORKS(call)                                                                            \
	do {                                                                                   \
		int result_ = (call);                                                          \
		if (result_) {                                                                 \
			victim_say("cannot prepare: %s:%d: %s gave %d", __FILE__, __LINE__,    \
				#call, result_);                                               \
			_exit(2);                                                              \
		}                                                                              \
	} while (0)

/* A call that is to succeed. */
#define OK(call)                                                                               \
	do {                                                                                   \
		int result_ = (call);                                                          \
		CHECK(!result_, "%s gave %d", #call, result_);                                 \
	} while (0)

/* All in turns: one before the program is ready, and one at each of @rounds signals, after which its number is said. */
static inline void victim_take_turns(int rounds, void (*take_turn)(void), const unsigned *turn)
{
	take_turn();
	victim_ready();
	for (int i = 0; i < rounds; i++) {
		victim_wait();
		take_turn();
		victim_say("turn %u", *turn);
	}
}

#endif
