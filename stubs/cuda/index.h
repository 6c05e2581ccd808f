/* INDEX_NAME: the number of a function in the API table. */
#ifndef STUBS_CUDA_INDEX_H
#define STUBS_CUDA_INDEX_H

enum {
#define CALL(name, class, how, registers, stack, floats) INDEX_##name,
#include "cuda.calls.h"
#undef CALL
	CALL_COUNT,
};

#endif
