/* What allocations cost, in nanoseconds: medians of many, each with what gives the memory back;
 * and fresh memory, of which nothing is given back meanwhile. */
#include <cuda.h>
#include <time.h>

#include "t/gpu/gpu.h"

#define MANY 2001
#define KIB  1024ul
#define MIB  (1ul << 20)
#define GIB  (1ul << 30)

static CUdeviceptr p, fresh[MANY];
static void *host;
static cudaStream_t stream;
static int n;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void must(CUresult r)
{
	if (r) {
		printf("a call gives %d\n", r);
		exit(1);
	}
}

template <class F> static void measure(const char *name, int count, F call)
{
	static double times[MANY];

	for (n = 0; n < count; n++) {
		double start = now();

		call();
		times[n] = now() - start;
	}
	qsort(times, count, sizeof(*times), compare);
	printf("%s %.0f\n", name, times[count / 2]);
}

static void alloc_free(const char *name, size_t size, int count)
{
	measure(name, count, [=] {
		must(cuMemAlloc(&p, size));
		must(cuMemFree(p));
	});
}

static void alloc_fresh(const char *name, size_t size, int count)
{
	measure(name, count, [=] { must(cuMemAlloc(&fresh[n], size)); });
	for (int i = 0; i < count; i++)
		must(cuMemFree(fresh[i]));
}

static void pooled(const char *name, size_t size)
{
	measure(name, MANY, [=] {
		must(cuMemAllocAsync(&p, size, stream));
		must(cuMemFreeAsync(p, stream));
	});
}

static void pinned(const char *name, size_t size, int count)
{
	measure(name, count, [=] {
		must(cuMemHostAlloc(&host, size, 0));
		must(cuMemFreeHost(host));
	});
}

int main(void)
{
	size_t free, total;

	OK(cudaMemGetInfo(&free, &total));
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	alloc_fresh("fresh-4K", 4 * KIB, MANY);
	alloc_fresh("fresh-2M", 2 * MIB, 500);
	alloc_fresh("fresh-1G", GIB, free / GIB / 2 < 16 ? free / GIB / 2 : 16);
	alloc_free("alloc-free-4K", 4 * KIB, MANY);
	alloc_free("alloc-free-2M", 2 * MIB, 501);
	alloc_free("alloc-free-1G", GIB, 51);
	alloc_free("alloc-free-quarter", free / 4, 5); /* more than is kept */
	pooled("pooled-4K", 4 * KIB);
	pooled("pooled-2M", 2 * MIB);
	measure("pooled-2M-wait", MANY, [] {
		must(cuMemAllocAsync(&p, 2 * MIB, stream));
		must(cuMemFreeAsync(p, stream));
		must(cuStreamSynchronize(stream));
	});
	pinned("pinned-4K", 4 * KIB, MANY);
	pinned("pinned-2M", 2 * MIB, 201);
	pinned("pinned-256M", 256 * MIB, 5);
	must(cuMemAlloc(&p, 4 * KIB));
	measure("attribute", MANY, [] {
		int type;

		must(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	});
	return 0;
}
