/* The allocator of device memory against a model: random calls, with a driver that checks what
 * it is asked for and has little memory. */
#include <stdlib.h>
#include <string.h>

#include "devmem/devmem.h"
#include "t/unit/tap.h"

#define CALLS 60000
#define MANY  1500

/* ---- a driver: which granules have memory, and of which handle ---- */

#define SPAN 4096u /* granules of the device's addresses that it knows */

static struct {
	uint64_t handle;
	int accessible;
} mapped[SPAN];
static uint64_t handle_size[CALLS * 4];
static uint64_t handles, limit, made, calls;
static const char *misuse;

static uint32_t index_of(uint64_t address)
{
	uint64_t i = (address - GPU_WINDOW) / DEVMEM_GRANULE;

	if (address % DEVMEM_GRANULE || i >= SPAN)
		misuse = "an address out of range";
	return i % SPAN;
}

static int reserve(uint64_t address, uint64_t size)
{
	return address != GPU_WINDOW || size != DEVMEM_DEVICE_SIZE;
}

static int create(uint64_t *handle, uint32_t device, uint64_t size)
{
	calls++;
	if (made + size > limit)
		return DEVMEM_NO_MEMORY;
	made += size;
	*handle = ++handles;
	handle_size[handles] = size;
	return 0;
}

static int map(uint64_t address, uint64_t size, uint64_t handle)
{
	if (!handle || handle_size[handle] != size)
		misuse = "a mapping of another size than its memory";
	for (uint64_t i = 0; i < size / DEVMEM_GRANULE; i++) {
		uint32_t at = index_of(address + i * DEVMEM_GRANULE);

		if (mapped[at].handle)
			misuse = "mapped twice";
		mapped[at].handle = handle;
		mapped[at].accessible = 0;
	}
	return 0;
}

static int set_access(uint64_t address, uint64_t size, uint32_t device, uint32_t peers)
{
	for (uint64_t i = 0; i < size / DEVMEM_GRANULE; i++) {
		uint32_t at = index_of(address + i * DEVMEM_GRANULE);

		if (!mapped[at].handle)
			misuse = "access to what is not mapped";
		mapped[at].accessible = 1 + peers;
	}
	return 0;
}

static int revoke(uint64_t address, uint64_t size, uint32_t peer)
{
	return 0;
}

static int unmap(uint64_t address, uint64_t size)
{
	uint64_t handle = mapped[index_of(address)].handle;

	if (!handle || handle_size[handle] != size)
		misuse = "unmapped otherwise than mapped";
	for (uint64_t i = 0; i < size / DEVMEM_GRANULE; i++)
		mapped[index_of(address + i * DEVMEM_GRANULE)].handle = 0;
	return 0;
}

static int release(uint64_t handle)
{
	if (!handle_size[handle])
		misuse = "released twice";
	made -= handle_size[handle];
	handle_size[handle] = 0;
	return 0;
}

static void *pieces[CALLS];
static uint32_t piece_count;

static void *memory(uint64_t size)
{
	return pieces[piece_count++] = calloc(1, size);
}

static void free_memory(void)
{
	while (piece_count)
		free(pieces[--piece_count]);
}

static const struct devmem_driver driver = {.reserve = reserve,
	.create = create,
	.map = map,
	.access = set_access,
	.revoke = revoke,
	.unmap = unmap,
	.release = release,
	.memory = memory};

static void fresh_driver(uint64_t bytes)
{
	memset(mapped, 0, sizeof(mapped));
	memset(handle_size, 0, sizeof(handle_size));
	handles = made = calls = 0;
	limit = bytes;
}

static struct devmem *fresh(uint64_t bytes)
{
	struct devmem *m;

	free_memory();
	m = memory(sizeof(*m));
	fresh_driver(bytes);
	misuse = NULL;
	devmem_open(m, &driver, 0, bytes / 16);
	return m;
}

/* ---- the model: allocations in no order, checked against each other ---- */

static struct devmem_allocation *live[MANY];
static uint32_t count;

static int accessible(const struct devmem_allocation *a)
{
	for (uint64_t at = a->address & ~(DEVMEM_GRANULE - 1); at < a->address + a->size;
		at += DEVMEM_GRANULE)
		if (!mapped[index_of(at)].handle || !mapped[index_of(at)].accessible)
			return 0;
	return 1;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = (*(struct devmem_allocation *const *)a)->address;
	uint64_t y = (*(struct devmem_allocation *const *)b)->address;

	return x < y ? -1 : x > y;
}

static int sound(struct devmem *m)
{
	static struct devmem_allocation *sorted[MANY];

	memcpy(sorted, live, count * sizeof(*live));
	qsort(sorted, count, sizeof(*sorted), compare);
	for (uint32_t i = 0; i < count; i++) {
		struct devmem_allocation *a = sorted[i];

		if (i && sorted[i - 1]->address + sorted[i - 1]->size > a->address)
			return 0;
		if (a->address % DEVMEM_UNIT || !accessible(a) || devmem_room(a) < a->size ||
			devmem_find(m, a->address) != a ||
			devmem_find(m, a->address + a->size - 1) != a ||
			devmem_find(m, a->address + a->size) == a)
			return 0;
	}
	return 1;
}

static uint64_t any_size(void)
{
	uint64_t size = 1 + ((uint64_t)rand() * rand()) % (1ul << (1 + rand() % 25));

	return rand() % 4 ? size : DEVMEM_UNIT << rand() % 16;
}

static uint64_t fingerprint;

/* @calls random calls; how many allocations failed. */
static int churn(struct devmem *m, unsigned seed, int n, uint32_t most)
{
	int failed = 0;

	srand(seed);
	while (n--) {
		if (count < most && rand() % 100 < 55) {
			int r = devmem_alloc(m, &driver, 0, any_size(), &live[count]);

			failed += r != 0;
			fingerprint = fingerprint * 31 + (r ? 1 : live[count]->address);
			count += !r;
		} else if (count) {
			uint32_t i = rand() % count;

			devmem_free(m, &driver, live[i]);
			live[i] = live[--count];
		}
	}
	return failed;
}

static void free_all(struct devmem *m)
{
	while (count)
		devmem_free(m, &driver, live[--count]);
}

static void test_classes(void)
{
	int good = 1, waste = 0;
	struct devmem_allocation a = {0};

	for (uint64_t size = 1; size <= DEVMEM_SMALL; size += 509) {
		a.class = devmem_class(size);
		good &= a.class < DEVMEM_CLASSES && devmem_room(&a) >= size;
		good &= devmem_class(devmem_room(&a)) == a.class;
		waste += devmem_room(&a) > size + DEVMEM_UNIT &&
			 devmem_room(&a) > size + size / 2;
	}
	ok(good, "every small size has a class, and its objects are of that class");
	ok(!waste, "nothing gets half as much again as it asked for");
	ok(devmem_granules(DEVMEM_SMALL) == 0 && devmem_granules(DEVMEM_SMALL + 1) == 1 &&
			devmem_granules(DEVMEM_GRANULE + 1) == 2,
		"larger ones get whole granules");
}

static void test_random(void)
{
	struct devmem *m = fresh(8ul << 30);
	uint64_t first;
	int good = 1, failed = 0;

	for (int i = 0; i < 30; i++) {
		failed += churn(m, i, CALLS / 30, MANY / 2);
		good &= sound(m);
	}
	ok(good, "what is live is mapped, apart from all else, and found by its addresses");
	ok(!failed, "and there is memory for it");
	ok(!misuse, "the driver is asked for nothing wrong (%s)", misuse ? misuse : "");
	first = fingerprint;
	free_all(m);
	devmem_trim(m, &driver, 0);
	ok(!made, "when all is freed, all goes back to the driver");

	fingerprint = 0;
	m = fresh(8ul << 30);
	for (int i = 0; i < 30; i++)
		churn(m, i, CALLS / 30, MANY / 2);
	ok(fingerprint == first, "the same calls get the same addresses");
	free_all(m);
}

static void test_full(void)
{
	struct devmem *m = fresh(96 * DEVMEM_GRANULE);
	struct devmem_allocation *all, *rest;
	int failed = churn(m, 1, 20000, MANY);

	ok(failed > 100 && sound(m) && !misuse, "running out of memory does no harm");
	free_all(m);
	devmem_trim(m, &driver, 0);
	ok(!devmem_alloc(m, &driver, 0, limit - made, &all),
		"what was freed can be had in one piece");
	ok(devmem_alloc(m, &driver, 0, DEVMEM_GRANULE, &rest) == DEVMEM_NO_MEMORY,
		"and no more than that");
	devmem_free(m, &driver, all);
	ok(!devmem_alloc(m, &driver, 0, 5 * DEVMEM_GRANULE, &all) &&
			!devmem_alloc(m, &driver, 0, limit - made - DEVMEM_GRANULE, &rest),
		"memory that is kept is given back when it is needed elsewhere");
	ok(devmem_alloc(m, &driver, 0, DEVMEM_DEVICE_SIZE + 1, &all) == DEVMEM_NO_MEMORY &&
			devmem_alloc(m, &driver, 0, DEVMEM_DEVICE_SIZE, &all) ==
				DEVMEM_NO_MEMORY,
		"more than there are addresses is refused");
}

static void test_reuse(void)
{
	struct devmem *m = fresh(8ul << 30);
	struct devmem_allocation *a, *b;
	uint64_t before, at;

	devmem_alloc(m, &driver, 0, 100 << 20, &a);
	at = a->address;
	devmem_free(m, &driver, a);
	ok(devmem_cached(m, 0) == 100 << 20, "what is freed is kept mapped");
	before = calls;
	devmem_alloc(m, &driver, 0, 100 << 20, &a);
	ok(a->address == at && calls == before, "and had again without the driver");
	devmem_free(m, &driver, a);
	devmem_alloc(m, &driver, 0, 2 << 20, &b);
	ok(b->address != at, "a large piece is not broken for a small one");
	devmem_alloc(m, &driver, 0, 5ul << 30, &a);
	devmem_free(m, &driver, a);
	ok(devmem_cached(m, 0) <= 512 << 20, "not more is kept than others can do without");
}

static void test_slab(void)
{
	static struct devmem_allocation *objects[DEVMEM_GRANULE / DEVMEM_UNIT];
	const uint32_t n = DEVMEM_GRANULE / DEVMEM_UNIT;
	struct devmem *m = fresh(1ul << 30);
	uint64_t holes[3];
	int good = 1;

	for (uint32_t i = 0; i < n; i++)
		good &= !devmem_alloc(m, &driver, 0, 1, &objects[i]) &&
			objects[i]->address == GPU_WINDOW + i * DEVMEM_UNIT;
	ok(good && made == DEVMEM_GRANULE, "a slab is filled to its end");
	for (uint32_t i = 0; i < 3; i++) {
		holes[i] = objects[n - 1 - i * n / 3]->address;
		devmem_free(m, &driver, objects[n - 1 - i * n / 3]);
		ok(!devmem_find(m, holes[i]), "what was freed is not found");
	}
	for (uint32_t i = 0; i < 3; i++) {
		devmem_alloc(m, &driver, 0, 1, &objects[0]);
		ok(objects[0]->address == holes[2 - i], "holes are filled, lowest first");
	}
	devmem_alloc(m, &driver, 0, 1, &objects[0]);
	ok(objects[0]->address == GPU_WINDOW + DEVMEM_GRANULE, "and then there is another one");
}

static void test_remake(void)
{
	struct devmem *m = fresh(8ul << 30);
	uint64_t needed = 0, was;

	churn(m, 7, 5000, MANY / 2);
	was = made;
	for (uint32_t i = 0; i < count; i++)
		needed += live[i]->size;
	fresh_driver(8ul << 30);
	devmem_forget(m, 0);
	ok(devmem_needed(m, 0) >= needed && devmem_needed(m, 0) <= was,
		"what nobody had is forgotten");
	ok(!devmem_remake(m, &driver, 0) && made == devmem_needed(m, 0) && sound(m) && !misuse,
		"the rest is there again, at the same addresses");
	churn(m, 8, 5000, MANY / 2);
	ok(sound(m) && !misuse, "and continues to work");
	devmem_set_peers(m, &driver, 0, 6);
	ok(mapped[index_of(live[0]->address & ~(DEVMEM_GRANULE - 1))].accessible == 7,
		"peers reach what is there");
	free_all(m);
}

int main(void)
{
	test_classes();
	test_random();
	test_full();
	test_reuse();
	test_slab();
	test_remake();
	free_memory();
	return done_testing();
}
