/* gpu.h - for programs that run on a real GPU: an error of the runtime's ends them. */
#ifndef T_GPU_GPU_H
#define T_GPU_GPU_H

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define OK(call)                                                                               \
	do {                                                                                   \
		cudaError_t error_ = (call);                                                   \
		if (error_ != cudaSuccess) {                                                   \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                   \
				cudaGetErrorString(error_));                                   \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

#endif
