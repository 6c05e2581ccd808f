/*
 * runtime LIBCUDART PTX ROUNDS: a program on a libcudart that is not the toolkit's, loaded by
 * its path; its functions have had the same parameters since CUDA 12.8. Prints hashes that do
 * not depend on when it is checkpointed.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N 65536

struct dim3 {
	unsigned x, y, z;
};

static void *library;

static void *function(const char *name)
{
	void *p = dlsym(library, name);

	if (!p) {
		puts(dlerror());
		exit(1);
	}
	return p;
}

#define CALL(name, types, ...)                                                                 \
	do {                                                                                   \
		int error_ = ((int(*) types)function(#name))(__VA_ARGS__);                     \
		if (error_) {                                                                  \
			printf("%s: error %d\n", #name, error_);                               \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

enum { TO_DEVICE = 1, TO_HOST = 2 };

static void count(void *calls)
{
	++*(unsigned *)calls;
}

int main(int argc, char **argv)
{
	unsigned *device, *pinned, round, calls = 0, hash = 0;
	void *stream, *module, *mix, *counter;
	struct dim3 grid = {N / 256, 1, 1}, block = {256, 1, 1};
	int rounds, version;

	if (argc < 4 || !(library = dlopen(argv[1], RTLD_NOW))) {
		puts(argc < 4 ? "usage: runtime LIBCUDART PTX ROUNDS" : dlerror());
		return 1;
	}
	rounds = atoi(argv[3]);
	void *mix_arguments[] = {&device, &round}, *count_arguments[] = {&device};
	CALL(cudaRuntimeGetVersion, (int *), &version);
	printf("runtime %d\n", version);
	CALL(cudaStreamCreateWithFlags, (void **, unsigned), &stream, 1);
	CALL(cudaMalloc, (unsigned **, size_t), &device, N * 4);
	CALL(cudaMallocHost, (unsigned **, size_t), &pinned, N * 4);
	CALL(cudaMemset, (void *, int, size_t), device, 1, N * 4);
	/* The stream does not wait for that by itself. */
	CALL(cudaDeviceSynchronize, (void));
	CALL(cudaLibraryLoadFromFile,
		(void **, const char *, void *, void *, unsigned, void *, void *, unsigned),
		&module, argv[2], NULL, NULL, 0, NULL, NULL, 0);
	CALL(cudaLibraryGetKernel, (void **, void *, const char *), &mix, module, "mix");
	CALL(cudaLibraryGetKernel, (void **, void *, const char *), &counter, module, "count");
	for (round = 0; round < (unsigned)rounds; round++) {
		CALL(cudaLaunchKernel,
			(void *, struct dim3, struct dim3, void **, size_t, void *), mix, grid,
			block, mix_arguments, 1024, stream);
		CALL(cudaLaunchKernel,
			(void *, struct dim3, struct dim3, void **, size_t, void *), counter,
			((struct dim3){1, 1, 1}), ((struct dim3){1, 1, 1}), count_arguments, 0,
			stream);
		if (round % 16 == 0)
			CALL(cudaLaunchHostFunc, (void *, void (*)(void *), void *), stream,
				count, &calls);
		if (round % (rounds / 16))
			continue;
		CALL(cudaMemcpyAsync, (void *, void *, size_t, int, void *), pinned, device,
			N * 4, TO_HOST, stream);
		CALL(cudaStreamSynchronize, (void *), stream);
		for (int i = 0; i < N; i++)
			hash = hash * 31 + pinned[i];
		CALL(cudaMemcpyAsync, (void *, void *, size_t, int, void *), device, pinned,
			N * 4, TO_DEVICE, stream);
		printf("round %u: %08x\n", round, hash);
		fflush(stdout);
	}
	CALL(cudaDeviceSynchronize, (void));
	printf("end: %08x, %u calls\n", hash, calls);
	return 0;
}
