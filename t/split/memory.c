/*
 * Memory as the driver gives it (on a real GPU, too: t/gpu/check.t): what allocations and
 * pointers are, what is an error, memory in the order of streams, pools, pinned and registered
 * memory, the program's own mappings. Run natively and split; split, memory is at its fixed
 * addresses.
 */
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "t/split/setup.h"

#define KIB (1ul << 10)
#define MIB (1ul << 20)
#define GIB (1ul << 30)

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NOT_FOUND = 500 };

static void *attribute(int which, CUdeviceptr address)
{
	void *value = NULL;

	OK(cuPointerGetAttribute(&value, which, address));
	return value;
}

static size_t free_bytes(void)
{
	size_t free, total;

	OK(cuMemGetInfo_v2(&free, &total));
	return free;
}

/* The device reaches all of it, and no byte of another. */
static void check_contents(CUdeviceptr p, size_t size, unsigned value)
{
	static unsigned words[64];

	OK(cuMemsetD32_v2(p, value, size / 4));
	OK(cuMemcpyDtoH_v2(words, p + size / 4 * 4 - 4, 4));
	CHECK(words[0] == value);
}

static void test_errors(void)
{
	CUdeviceptr p = 0, start;
	void *below;
	size_t size;

	CHECK_RESULT(cuMemAlloc_v2(&p, 0), INVALID_VALUE);
	CHECK_RESULT(cuMemAlloc_v2(NULL, 1), INVALID_VALUE);
	CHECK_RESULT(cuMemAlloc_v2(&p, 1ul << 50), OUT_OF_MEMORY);
	OK(cuMemFree_v2(0));
	CHECK_RESULT(cuMemFree_v2(12345), INVALID_VALUE);
	OK(cuMemAlloc_v2(&p, 1000));
	CHECK_RESULT(cuMemFree_v2(p + 512), INVALID_VALUE);
	CHECK_RESULT(cuMemFree_v2(p + 1), INVALID_VALUE);
	OK(cuMemGetAddressRange_v2(&start, &size, p + 999));
	CHECK(start == p && size == 1000);
	OK(cuMemGetAddressRange_v2(NULL, NULL, p));
	CHECK_RESULT(cuMemGetAddressRange_v2(&start, &size, p + 1000), NOT_FOUND);
	OK(cuCtxSetCurrent(NULL));
	OK(cuCtxGetCurrent(&below));
	CHECK(below == context); /* what test_contexts() has left on the stack */
	OK(cuCtxSetCurrent(NULL));
	CHECK_RESULT(cuMemAlloc_v2(&start, 1), INVALID_CONTEXT);
	CHECK_RESULT(cuMemGetAddressRange_v2(&start, &size, p), INVALID_CONTEXT);
	OK(cuMemFree_v2(p));
	OK(cuCtxSetCurrent(context));
	CHECK_RESULT(cuMemFree_v2(p), INVALID_VALUE);
	CHECK_RESULT(cuMemGetAddressRange_v2(&start, &size, p), NOT_FOUND);
}

static void test_pitch(void)
{
	CUdeviceptr p;
	size_t pitch, size;

	OK(cuMemAllocPitch_v2(&p, &pitch, 513, 10, 4));
	OK(cuMemGetAddressRange_v2(NULL, &size, p));
	CHECK(pitch == 1024 && size == 10240);
	OK(cuMemFree_v2(p));
	CHECK_RESULT(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 2), INVALID_VALUE);
	CHECK_RESULT(cuMemAllocPitch_v2(&p, &pitch, 0, 10, 4), INVALID_VALUE);
	CHECK_RESULT(cuMemAllocPitch_v2(&p, NULL, 100, 10, 4), INVALID_VALUE);
}

/* Many sizes at once, in use at the same time; then all of the device. */
static void test_sizes(void)
{
	static CUdeviceptr p[200];
	size_t before = free_bytes(), size;
	int n = 0;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 200; i++) {
			size = 4 + (i * 7919ul * (round + 1)) % (i % 10 ? 40 * KIB : 5 * MIB);
			OK(cuMemAlloc_v2(&p[i], size));
			check_contents(p[i], size, i);
			CHECK(p[i] % 512 == 0);
		}
		for (int i = 0; i < 200; i++) {
			unsigned word;

			OK(cuMemcpyDtoH_v2(&word, p[i], 4));
			CHECK(word == (unsigned)i);
			OK(cuMemFree_v2(p[i]));
		}
	}
	CHECK(free_bytes() >= before - 40 * MIB);
	size = before / 28 & ~(2 * MIB - 1);
	while (n < 200 && !cuMemAlloc_v2(&p[n], size))
		n++;
	CHECK(n >= 26 && n < 30);
	CHECK_RESULT(cuMemAlloc_v2(&p[n], size), OUT_OF_MEMORY);
	OK(cuMemFree_v2(p[--n]));
	OK(cuMemAlloc_v2(&p[n++], size - MIB));
	while (n)
		OK(cuMemFree_v2(p[--n]));
	OK(cuMemAlloc_v2(&p[0], before / 8 * 7));
	OK(cuMemFree_v2(p[0]));
}

static void test_attributes(void)
{
	int which[] = {1, 2, 3, 4, 8, 9, 11, 12}, other = 0, r;
	uint64_t values[8] = {0};
	void *data[8];
	CUdeviceptr p, q;

	OK(cuMemAlloc_v2(&p, 5000));
	OK(cuMemAlloc_v2(&q, 5000));
	CHECK(attribute(1, p + 7) == context);
	CHECK((int)(long)attribute(2, p) == 2 && (CUdeviceptr)attribute(3, p + 7) == p + 7);
	CHECK((CUdeviceptr)attribute(11, p + 7) == p && (size_t)attribute(12, p + 7) == 5000);
	CHECK(attribute(7, p) == attribute(7, p + 4999) && attribute(7, p) != attribute(7, q));
	CHECK(!attribute(8, p) && !attribute(9, p) && !attribute(17, p));
	CHECK_RESULT(cuPointerGetAttribute(values, 4, p), INVALID_VALUE);
	for (int i = 0; i < 8; i++)
		data[i] = &values[i];
	OK(cuPointerGetAttributes(8, which, data, p + 9));
	CHECK(values[0] == (uint64_t)context && values[1] == 2 && values[2] == p + 9);
	CHECK(values[3] == 0 && values[6] == p && values[7] == 5000);
	OK(cuMemFree_v2(p));
	for (int i = 1; i <= 17; i++)
		CHECK_RESULT(cuPointerGetAttribute(values, i, p), INVALID_VALUE);
	r = cuPointerGetAttributes(8, which, data, p);
	CHECK(!r && !values[0] && !values[1] && !values[2] && values[3] == p);
	CHECK((int)values[5] == -2);
	data[0] = &other;
	which[0] = 2;
	OK(cuPointerGetAttributes(1, which, data, (CUdeviceptr)&other));
	CHECK(other == 0);
	OK(cuMemFree_v2(q));
}

static void test_host(void)
{
	char *own =
		mmap(NULL, 1 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *small[50], *large;
	unsigned flags;
	CUdeviceptr p;

	for (int i = 0; i < 50; i++) {
		OK(cuMemHostAlloc(&small[i], 100 + i, i % 8));
		memset(small[i], i, 100 + i);
		OK(cuMemHostGetFlags(&flags, small[i]));
		CHECK(flags == ((i % 8 & 4) | 2u));
	}
	for (int i = 0; i < 50; i++)
		CHECK(*(char *)small[i] == i && ((char *)small[i])[99 + i] == i);
	OK(cuMemHostGetDevicePointer_v2(&p, small[0], 0));
	CHECK(p == (CUdeviceptr)small[0]);
	CHECK((int)(long)attribute(2, p) == 1 && (size_t)attribute(12, p) == 100);
	CHECK(attribute(4, p + 5) == (char *)small[0] + 5 && attribute(1, p) == context);
	CHECK_RESULT(cuMemFreeHost((char *)small[0] + 50), INVALID_VALUE);
	CHECK_RESULT(cuMemFree_v2((CUdeviceptr)small[0]), INVALID_VALUE);
	CHECK_RESULT(cuMemHostUnregister(small[0]), INVALID_VALUE);
	for (int i = 0; i < 50; i++)
		OK(cuMemFreeHost(small[i]));
	CHECK_RESULT(cuMemFreeHost(small[0]), INVALID_VALUE);
	CHECK_RESULT(cuMemHostGetFlags(&flags, small[0]), INVALID_VALUE);
	OK(cuMemFreeHost(NULL));
	OK(cuMemAllocHost_v2(&large, 70 * MIB));
	check_contents((CUdeviceptr)large, 70 * MIB, 17);
	CHECK(*(unsigned *)large == 17);
	OK(cuMemFreeHost(large));
	OK(cuMemHostAlloc(&large, 0, 0));
	CHECK_RESULT(cuMemHostAlloc(&large, 100, 8), INVALID_VALUE);
	CHECK_RESULT(cuMemHostAlloc(NULL, 100, 0), INVALID_VALUE);

	OK(cuMemHostRegister_v2(own, 1 * MIB, 1));
	OK(cuMemHostGetFlags(&flags, own));
	CHECK(flags == 3);
	check_contents((CUdeviceptr)own, 1 * MIB, 18);
	CHECK_RESULT(cuMemHostRegister_v2(own + 4096, 4096, 0), 712);
	CHECK_RESULT(cuMemFreeHost(own), INVALID_VALUE);
	OK(cuMemHostUnregister(own));
	CHECK_RESULT(cuMemHostUnregister(own), 713);
	munmap(own, 1 * MIB);
}

static uint64_t pool_value(void *pool, int which)
{
	uint64_t value = 0;

	OK(cuMemPoolGetAttribute(pool, which, &value));
	return value;
}

/* Slower than the calls that follow it. */
static void slow(void *argument)
{
	volatile unsigned *word = argument;

	for (unsigned i = 0; i < 3000000; i++)
		*word = i;
	*word = 1;
}

/* Until the program lets it go. */
static void held(void *argument)
{
	atomic_int *go = argument;

	while (!atomic_load(go))
		sched_yield();
}

static unsigned word_of(CUdeviceptr p)
{
	unsigned word;

	OK(cuMemcpyDtoH_v2(&word, p, 4));
	return word;
}

/* What is freed on one stream is not in use on another before the first has come so far. */
static void test_stream_order(void)
{
	static unsigned source[64 * KIB], slowly, kept;
	static atomic_int go;
	CUdeviceptr p[2] = {0}, q;
	void *one, *two;

	OK(cuStreamCreate(&one, 1));
	OK(cuStreamCreate(&two, 1));
	for (int i = 0; i < 20; i++) {
		for (unsigned j = 0; j < 64 * KIB; j++)
			source[j] = i;
		OK(cuMemAllocAsync(&p[0], sizeof(source), one));
		OK(cuLaunchHostFunc(one, slow, &slowly));
		OK(cuMemcpyHtoDAsync_v2(p[0], source, sizeof(source), one));
		OK(cuMemcpyDtoHAsync_v2(&kept, p[0] + sizeof(source) - 4, 4, one));
		OK(cuMemFreeAsync(p[0], one));
		OK(cuMemAllocAsync(&q, sizeof(source), two));
		OK(cuMemsetD32_v2(q, 1000, 64 * KIB));
		OK(cuStreamSynchronize(one));
		CHECK(kept == (unsigned)i);
		CHECK(word_of(q) == 1000 && word_of(q + sizeof(source) - 4) == 1000);
		OK(cuMemFreeAsync(q, two));
		OK(cuStreamSynchronize(two));
	}
	if (is_split()) { /* a stream has its own back at once */
		OK(cuMemAllocAsync(&p[0], 10 * MIB, one));
		OK(cuLaunchHostFunc(one, held, &go));
		OK(cuMemFreeAsync(p[0], one));
		OK(cuMemAllocAsync(&p[1], 10 * MIB - 5, one));
		CHECK(p[0] == p[1]);
		OK(cuMemFreeAsync(p[1], one));
		OK(cuMemAllocAsync(&q, 10 * MIB, two));
		CHECK(q != p[0]);
		atomic_store(&go, 1);
		OK(cuMemFreeAsync(q, two));
	}
	OK(cuMemAllocAsync(&p[0], 10 * MIB, one));
	OK(cuLaunchHostFunc(one, slow, &slowly));
	OK(cuMemsetD32_v2(p[0], 5, 10));
	OK(cuMemFreeAsync(p[0], one));
	OK(cuStreamDestroy_v2(one));
	OK(cuStreamSynchronize(two));
	OK(cuStreamDestroy_v2(two));
}

static void test_pools(void)
{
	struct {
		int type, handles, location, id;
		uint64_t rest[9];
	} properties = {.type = 1, .location = 1};
	void *standard, *own, *current, *stream;
	uint64_t zero = 0, threshold = 1 * GIB, used;
	CUdeviceptr p, q;

	OK(cuStreamCreate(&stream, 0));
	OK(cuDeviceGetDefaultMemPool(&standard, 0));
	OK(cuDeviceGetMemPool(&current, 0));
	CHECK(standard == current);
	OK(cuCtxSynchronize());
	used = pool_value(standard, 7);
	OK(cuMemPoolSetAttribute(standard, 8, &zero));
	OK(cuMemAllocAsync(&p, 1000, stream));
	OK(cuMemAllocAsync(&q, 3 * MIB, stream));
	CHECK(pool_value(standard, 7) == used + 1000 + 3 * MIB);
	CHECK(attribute(17, p) == standard && !attribute(1, p));
	CHECK((size_t)attribute(12, q) == 3 * MIB);
	check_contents(q, 3 * MIB, 9);
	OK(cuMemFree_v2(q));
	OK(cuMemFreeAsync(p, stream));
	CHECK_RESULT(cuMemFreeAsync(p, stream), INVALID_VALUE);
	CHECK_RESULT(cuMemFreeAsync(p + 1, stream), INVALID_VALUE);
	CHECK_RESULT(cuPointerGetAttribute(&q, 2, p), INVALID_VALUE);
	OK(cuMemFreeAsync(0, stream));
	if (is_split()) /* the driver's own count is not always that fast */
		CHECK(pool_value(standard, 7) == used);
	CHECK(pool_value(standard, 8) == used + 1000 + 3 * MIB);
	OK(cuMemAllocAsync(&p, 0, stream));
	CHECK(p == 0);
	OK(cuMemAlloc_v2(&p, 1000));
	OK(cuMemFreeAsync(p, stream));

	CHECK(pool_value(standard, 1) == 1 && pool_value(standard, 4) == 0);
	OK(cuMemPoolSetAttribute(standard, 4, &threshold));
	CHECK(pool_value(standard, 4) == threshold);
	CHECK_RESULT(cuMemPoolSetAttribute(standard, 5, &zero), INVALID_VALUE);
	CHECK_RESULT(cuMemPoolSetAttribute(standard, 8, &threshold), INVALID_VALUE);
	CHECK_RESULT(cuMemPoolGetAttribute(standard, 14, &zero), INVALID_VALUE);
	CHECK_RESULT(cuMemPoolDestroy(standard), INVALID_VALUE);

	OK(cuMemPoolCreate(&own, &properties));
	OK(cuMemAllocFromPoolAsync(&p, 5000, own, stream));
	CHECK(attribute(17, p) == own && pool_value(own, 7) == 5000);
	OK(cuDeviceSetMemPool(0, own));
	OK(cuMemAllocAsync(&q, 1000, stream));
	CHECK(attribute(17, q) == own && pool_value(own, 7) == 6000);
	OK(cuMemFreeAsync(q, stream));
	OK(cuMemPoolTrimTo(own, 0));
	OK(cuMemPoolDestroy(own));
	OK(cuDeviceGetMemPool(&current, 0));
	CHECK(current == standard);
	check_contents(p, 5000, 3);
	OK(cuMemFreeAsync(p, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuStreamDestroy_v2(stream));
}

static void test_mappings(void)
{
	struct {
		int type, handles, location, id;
		uint64_t rest[2];
	} properties = {.type = 1, .location = 1}, got;
	struct {
		int location, id, flags;
	} access = {1, 0, 3};
	CUdeviceptr base, second, third;
	uint64_t handle[2], again;
	void *taken;

	OK(cuMemAddressReserve(&base, 64 * MIB, 0, 0, 0));
	OK(cuMemAddressReserve(&second, 64 * MIB, 0, 0, 0));
	CHECK(second >= base + 64 * MIB || second + 64 * MIB <= base);
	/* Where something else has come to lie already. */
	taken = mmap((void *)(second + 64 * MIB), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	OK(cuMemAddressReserve(&third, 64 * MIB, 0, 0, 0));
	CHECK(third != (CUdeviceptr)taken);
	OK(cuMemAddressFree(third, 64 * MIB));
	munmap(taken, 4096);
	OK(cuMemCreate(&handle[0], 4 * MIB, &properties, 0));
	OK(cuMemCreate(&handle[1], 2 * MIB, &properties, 0));
	OK(cuMemMap(base, 4 * MIB, 0, handle[0], 0));
	OK(cuMemMap(base + 4 * MIB, 2 * MIB, 0, handle[1], 0));
	CHECK(cuMemMap(base + 2 * MIB, 2 * MIB, 0, handle[1], 0) != 0);
	OK(cuMemSetAccess(base, 6 * MIB, &access, 1));
	check_contents(base, 6 * MIB, 77);
	OK(cuMemRetainAllocationHandle(&again, (void *)(base + 5000)));
	CHECK(again == handle[0]);
	OK(cuMemGetAllocationPropertiesFromHandle(&got, handle[1]));
	CHECK(!memcmp(&got, &properties, sizeof(got)));
	OK(cuMemRelease(again));
	OK(cuMemMap(second, 4 * MIB, 0, handle[0], 0));
	OK(cuMemRelease(handle[0]));
	CHECK_RESULT(cuMemRelease(handle[0]), INVALID_VALUE);
	OK(cuMemSetAccess(second, 4 * MIB, &access, 1));
	CHECK(word_of(second + 4 * MIB - 4) == 77);
	CHECK_RESULT(cuMemUnmap(base, 2 * MIB), INVALID_VALUE);
	CHECK_RESULT(cuMemAddressFree(base, 64 * MIB), INVALID_VALUE);
	CHECK_RESULT(cuMemFree_v2(base), INVALID_VALUE);
	OK(cuMemUnmap(base, 6 * MIB));
	OK(cuMemUnmap(second, 4 * MIB));
	OK(cuMemRelease(handle[1]));
	OK(cuMemAddressFree(base, 64 * MIB));
	OK(cuMemAddressFree(second, 64 * MIB));
}

/* What is of a context goes with it; of others', nothing. */
static void test_contexts(void)
{
	CUdeviceptr p, q;
	void *second, *host, *mine;

	OK(cuMemAlloc_v2(&q, 5000));
	OK(cuCtxCreate_v2(&second, 0, 0));
	OK(cuMemAlloc_v2(&p, 5000));
	CHECK(attribute(1, p) == second && attribute(1, q) == context);
	OK(cuMemAllocHost_v2(&host, 9000));
	OK(cuCtxSetCurrent(context));
	CHECK(attribute(1, p) == second);
	OK(cuMemAllocHost_v2(&mine, 9000));
	OK(cuCtxDestroy_v2(second));
	CHECK_RESULT(cuMemFree_v2(p), INVALID_VALUE);
	CHECK_RESULT(cuPointerGetAttribute(&p, 2, p), INVALID_VALUE);
	CHECK_RESULT(cuMemFreeHost(host), INVALID_VALUE);
	check_contents(q, 5000, 6);
	check_contents((CUdeviceptr)mine, 9000, 7);
	CHECK(*(unsigned *)mine == 7);
	OK(cuMemFreeHost(mine));
	OK(cuMemFree_v2(q));
}

static void test_places(void)
{
	CUdeviceptr p, q;
	void *host;

	OK(cuMemAlloc_v2(&p, 1));
	OK(cuMemAllocAsync(&q, 5 * MIB, NULL));
	OK(cuMemAllocHost_v2(&host, 1));
	if (is_split()) {
		CHECK(p >> 40 == 0x20 && q >> 40 == 0x20);
		CHECK((CUdeviceptr)host >> 32 == 0x46f0);
	}
	OK(cuMemFreeHost(host));
	OK(cuMemFree_v2(q));
	OK(cuMemFree_v2(p));
}

int main(void)
{
	set_up();
	test_places();
	test_contexts();
	test_errors();
	test_pitch();
	test_sizes();
	test_attributes();
	test_host();
	test_stream_order();
	test_pools();
	test_mappings();
	if (!wrong)
		puts("done");
	return wrong != 0;
}
