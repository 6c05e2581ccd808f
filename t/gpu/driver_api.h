/* driver_api.h - for programs of the driver API that run on a real GPU: an error of the driver's ends them. */
#ifndef T_GPU_DRIVER_API_H
#define T_GPU_DRIVER_API_H

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define OK(call)                                                                               \
	do {                                                                                   \
		CUresult error_ = (call);                                                      \
		const char *text_ = "?";                                                       \
		if (error_ != CUDA_SUCCESS) {                                                  \
			cuGetErrorString(error_, &text_);                                      \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, text_);           \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

#endif
