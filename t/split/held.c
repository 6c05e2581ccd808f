/*
 * held [WHAT]: memory of every kind, device pointers in device memory, held over a checkpoint
 * and a restart; and then used as before. WHAT is something that cannot be restored, held as
 * well.
 */
#include <sys/mman.h>

#include "t/split/cuda_api.h"
#include "t/split/memory_kinds.h"
#include "t/victim/victim.h"

#define OK(call) CHECK(!(result = (call)), #call " gave %d", result)
#define CELLS    300

/* In device memory: a cell knows where the next one is. The rest of it is a pattern. */
struct cell {
	CUdeviceptr next;
	uint64_t size, seed;
};

static int result;
static CUdeviceptr cells[CELLS], first;
static uint64_t sizes[CELLS];

void victim_hurt(void)
{
	uint64_t wrong = 1;

	cuMemcpyHtoD_v2(cells[CELLS / 2] + sizeof(struct cell), &wrong, sizeof(wrong));
}

static void *scratch(void)
{
	static void *p;

	if (!p)
		p = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	return p;
}

/* ---- cells ---- */

static void write_cell(CUdeviceptr at, CUdeviceptr next, uint64_t size, uint64_t seed)
{
	struct cell *c = scratch();

	*c = (struct cell){next, size, seed};
	victim_fill(c + 1, size - sizeof(*c), seed);
	OK(cuMemcpyHtoD_v2(at, c, size));
}

static uint64_t size_of(int i)
{
	return (i % 20 ? 64ul + i * 37 % 9000 * 8ul : 3 * MIB + i * 64 * KIB) & ~7ul;
}

static void make_cells(void)
{
	static CUdeviceptr holes[CELLS];

	for (int i = 0; i < CELLS; i++) {
		sizes[i] = size_of(i);
		if (i % 3)
			OK(cuMemAlloc_v2(&cells[i], sizes[i]));
		else
			OK(cuMemAllocAsync(&cells[i], sizes[i], NULL));
		OK(cuMemAlloc_v2(&holes[i], size_of(i + 1)));
	}
	for (int i = 0; i < CELLS; i++) {
		write_cell(cells[i], first, sizes[i], i);
		first = cells[i];
		OK(cuMemFree_v2(holes[i]));
	}
}

/* From one to the next by what device memory says. */
static void walk(void)
{
	CUdeviceptr at = first;
	struct cell *c = scratch();
	int count = 0;

	for (; at && count < CELLS; count++) {
		OK(cuMemcpyDtoH_v2(c, at, sizeof(*c)));
		CHECK(at == cells[CELLS - 1 - count] && c->seed == CELLS - 1u - count,
			"cell %d is at %#lx, its seed %lu", count, at, c->seed);
		if (c->size > 32 * MIB)
			return;
		OK(cuMemcpyDtoH_v2(c, at, c->size));
		if (!SAME(c + 1, c->size - sizeof(*c), c->seed, "a cell"))
			return;
		at = c->next;
	}
	CHECK(count == CELLS && !at, "%d cells", count);
}

/* ---- all else ---- */

static struct {
	char *small, *large, *own;
	void *pool, *stream;
	CUdeviceptr pooled, base, again;
	char *managed[4];
	uint64_t handle, id;
	size_t free;
} held;

static void make_host(void)
{
	OK(cuMemHostAlloc((void **)&held.small, 5000, 4));
	OK(cuMemAllocHost_v2((void **)&held.large, 5 * MIB));
	held.own = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	OK(cuMemHostRegister_v2(held.own, MIB, 1));
	victim_fill(held.small, 5000, 1);
	victim_fill(held.large, 5 * MIB, 2);
	victim_fill(held.own, MIB, 3);
}

static void make_pool(void)
{
	CUdeviceptr pending;

	OK(cuStreamCreate(&held.stream, 1));
	OK(cuMemPoolCreate(&held.pool, &on_device));
	OK(cuMemAllocFromPoolAsync(&held.pooled, 100000, held.pool, held.stream));
	OK(cuMemAllocFromPoolAsync(&pending, 100000, held.pool, held.stream));
	OK(cuMemFreeAsync(pending, held.stream));
	OK(cuMemAllocAsync(&pending, 10 * MIB, held.stream));
	OK(cuMemFreeAsync(pending, held.stream));
	OK(cuMemsetD32_v2(held.pooled, 4321, 25000));
}

static size_t managed_size(int i)
{
	return i * i * MIB + 100;
}

static void make_managed(void)
{
	for (int i = 0; i < 4; i++) {
		CUdeviceptr p;

		OK(cuMemAllocManaged(&p, managed_size(i), 1));
		held.managed[i] = (char *)p;
		victim_fill(held.managed[i], managed_size(i), 10 + i);
	}
}

static void check_managed(void)
{
	for (int i = 0; i < 4; i++) {
		SAME(held.managed[i], managed_size(i), 10 + i, "managed memory");
		OK(cuMemsetD32_v2((CUdeviceptr)held.managed[i], 77, 10));
		CHECK(held.managed[i][36] == 77, "the device reaches something else");
		OK(cuMemFree_v2((CUdeviceptr)held.managed[i]));
	}
}

/* The same memory at two places, and a second one beside it. */
static void make_mappings(void)
{
	uint64_t other;

	OK(cuMemAddressReserve(&held.base, 64 * MIB, 0, 0, 0));
	OK(cuMemCreate(&held.handle, 4 * MIB, &on_device, 0));
	OK(cuMemCreate(&other, 2 * MIB, &on_device, 0));
	OK(cuMemMap(held.base, 4 * MIB, 0, held.handle, 0));
	OK(cuMemMap(held.base + 4 * MIB, 2 * MIB, 0, other, 0));
	OK(cuMemMap(held.base + 16 * MIB, 4 * MIB, 0, held.handle, 0));
	OK(cuMemSetAccess(held.base, 6 * MIB, &reachable, 1));
	OK(cuMemSetAccess(held.base + 16 * MIB, 4 * MIB, &reachable, 1));
	OK(cuMemRelease(other));
	victim_fill(scratch(), 6 * MIB, 5);
	OK(cuMemcpyHtoD_v2(held.base, scratch(), 6 * MIB));
}

static void check_host(void)
{
	unsigned flags = 0;
	CUdeviceptr p = 0;

	SAME(held.small, 5000, 1, "pinned memory");
	SAME(held.large, 5 * MIB, 2, "much pinned memory");
	SAME(held.own, MIB, 3, "registered memory");
	OK(cuMemHostGetFlags(&flags, held.small));
	CHECK(flags == 6, "flags are %u", flags);
	OK(cuMemHostGetDevicePointer_v2(&p, held.own + 100, 0));
	OK(cuMemsetD32_v2((CUdeviceptr)held.own, 7, 10));
	OK(cuMemsetD32_v2((CUdeviceptr)held.large + 4 * MIB, 7, 10));
	CHECK(held.own[36] == 7 && held.large[4 * MIB] == 7,
		"the device reaches something else");
	OK(cuMemHostUnregister(held.own));
	OK(cuMemFreeHost(held.small));
	OK(cuMemFreeHost(held.large));
}

static void check_pool(void)
{
	uint64_t used = 0;
	void *pool = NULL;
	unsigned word = 0;
	CUdeviceptr p = 0;

	OK(cuMemcpyDtoH_v2(&word, held.pooled + 99996, 4));
	CHECK(word == 4321, "pooled memory has %u", word);
	OK(cuPointerGetAttribute(&pool, 17, held.pooled));
	CHECK(pool == held.pool, "it is of pool %p", pool);
	OK(cuMemPoolGetAttribute(held.pool, 7, &used));
	CHECK(used == 100000, "the pool has %lu bytes", used);
	OK(cuMemAllocFromPoolAsync(&p, 5 * MIB, held.pool, held.stream));
	OK(cuMemsetD32_v2(p, 1, 10));
	OK(cuMemFreeAsync(p, held.stream));
	OK(cuMemFreeAsync(held.pooled, held.stream));
	OK(cuStreamSynchronize(held.stream));
	OK(cuMemPoolDestroy(held.pool));
	OK(cuStreamDestroy_v2(held.stream));
}

static void check_mappings(void)
{
	unsigned word = 0;

	OK(cuMemcpyDtoH_v2(scratch(), held.base, 6 * MIB));
	SAME(scratch(), 6 * MIB, 5, "the program's own mapping");
	OK(cuMemsetD32_v2(held.base + 16 * MIB, 99, 10));
	OK(cuMemcpyDtoH_v2(&word, held.base + 36, 4));
	CHECK(word == 99, "the other mapping is of other memory");
	OK(cuMemMap(held.base + 32 * MIB, 4 * MIB, 0, held.handle, 0));
	OK(cuMemRelease(held.handle));
	CHECK(cuMemRelease(held.handle) == 1, "a handle too many");
	OK(cuMemUnmap(held.base, 6 * MIB));
	OK(cuMemUnmap(held.base + 16 * MIB, 4 * MIB));
	OK(cuMemUnmap(held.base + 32 * MIB, 4 * MIB));
	OK(cuMemAddressFree(held.base, 64 * MIB));
}

static uint64_t id_of(CUdeviceptr p)
{
	uint64_t id = 0;

	OK(cuPointerGetAttribute(&id, 7, p));
	return id;
}

/* Everything given back, there is as much as at first; and it can be had. */
static void check_end(void)
{
	size_t free = 0, total;
	CUdeviceptr all;

	for (int i = 0; i < CELLS; i++)
		OK(cuMemFree_v2(cells[i]));
	CHECK(cuMemFree_v2(cells[0]) == 1, "freed twice");
	OK(cuMemGetInfo_v2(&free, &total));
	/* The driver itself may want more than at first. */
	CHECK(free + 64 * MIB >= held.free && free <= held.free + 64 * MIB,
		"%zu bytes are free, %zu were", free, held.free);
	OK(cuMemAlloc_v2(&all, held.free / 8 * 7));
	OK(cuMemFree_v2(all));
}

static void hold(const char *what)
{
	uint64_t handle;

	if (!strcmp(what, "unmapped"))
		OK(cuMemCreate(&handle, 2 * MIB, &on_device, 0));
	if (!strcmp(what, "gone"))
		munmap(held.own + MIB / 2, 4096);
	if (!strcmp(what, "retained"))
		OK(cuMemRetainAllocationHandle(&handle, (void *)cells[0]));
}

int main(int argc, char **argv)
{
	void *context = NULL;
	size_t total;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemGetInfo_v2(&held.free, &total));
	make_cells();
	make_host();
	make_managed();
	make_pool();
	make_mappings();
	if (argc > 1)
		hold(argv[1]);
	held.id = id_of(cells[5]);
	walk();
	victim_ready();
	victim_wait();
	walk();
	CHECK(id_of(cells[5]) == held.id, "another buffer");
	check_host();
	check_managed();
	check_pool();
	check_mappings();
	check_end();
	return victim_done();
}
