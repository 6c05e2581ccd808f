/* Whether streams are being captured into graphs: memory.c has to know. */
#include "shared/cuda/calls.h"
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"

#include "shared/cuda/call_index.inc"

#define BEGIN(name, parameters, ...)                                                           \
	int body_##name parameters                                                             \
	{                                                                                      \
		return memory_capture_begins(real_##name(__VA_ARGS__));                        \
	}
#define BEGIN_GRAPH(name)                                                                      \
	BEGIN(name,                                                                            \
		(void *stream, void *graph, const void *dependencies, const void *data,        \
			size_t count, int mode),                                               \
		stream, graph, dependencies, data, count, mode)
#define END(name)                                                                              \
	int body_##name(void *stream, void **graph)                                            \
	{                                                                                      \
		int r = cuda_perform(INDEX_##name,                                             \
			(uint64_t[CALL_WORDS]){(uint64_t)stream, (uint64_t)graph});            \
                                                                                               \
		memory_capture_ends();                                                         \
		return r;                                                                      \
	}

BEGIN(cuStreamBeginCapture, (void *stream), stream)
BEGIN(cuStreamBeginCapture_ptsz, (void *stream), stream)
BEGIN(cuStreamBeginCapture_v2, (void *stream, int mode), stream, mode)
BEGIN(cuStreamBeginCapture_v2_ptsz, (void *stream, int mode), stream, mode)
BEGIN_GRAPH(cuStreamBeginCaptureToGraph)
BEGIN_GRAPH(cuStreamBeginCaptureToGraph_ptsz)
END(cuStreamEndCapture)
END(cuStreamEndCapture_ptsz)
