/* driver_victim.h - for victims (t/victim/victim.h) that call the driver. */
#ifndef T_SPLIT_DRIVER_VICTIM_H
#define T_SPLIT_DRIVER_VICTIM_H

#include "t/split/cuda_api.h"
#include "t/victim/victim.h"

/* A call that is to succeed. */
#define OK(call)                                                                               \
	do {                                                                                   \
		int result_ = (call);                                                          \
		CHECK(!result_, "%s gave %d", #call, result_);                                 \
	} while (0)

#endif
