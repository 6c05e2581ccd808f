/*
 * window_mapping WHEN: has memory of its own, by a hint, among the addresses of the lower half, from
 * before it came or from after. The driver gets by without them, and a checkpoint says that it
 * cannot tell whose they are, at each of these places, until they are given back.
 */
#include <sys/mman.h>

#include "shared/address_windows.h"
#include "t/split/driver_victim.h"

#define SIZE (1ul << 20)

static const unsigned long places[] = {LOWER_CORE + 0x400000, LOWER_RUNTIME + 0x800000,
	LOWER_PART_LDSO, LOWER_PART_LIBC, LOWER_PART_LIBC + (1ul << 30), LOWER_HEAP,
	LOWER_HEAP + (1ul << 36), LOWER_PART_STACKS, LOWER_PART_DRIVER, LOWER_PART_END - SIZE};

#define COUNT (sizeof(places) / sizeof(places[0]))

static unsigned char *memory[COUNT];

void victim_hurt(void)
{
	memory[0][5] ^= 1;
}

/* Where the driver is already the kernel finds another place. */
static void map_all(void)
{
	for (unsigned i = 0; i < COUNT; i++) {
		memory[i] = mmap((void *)places[i], SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(memory[i] != MAP_FAILED);
		memset(memory[i], i + 1, SIZE);
	}
}

static int is_as_it_was(void)
{
	for (unsigned i = 0; i < COUNT; i++)
		for (unsigned long j = 0; memory[i] && j < SIZE; j += 512)
			if (memory[i][j] != i + 1)
				return 0;
	return 1;
}

static void use_driver(void)
{
	void *context, *stream;
	CUdeviceptr p;
	int device;

	WORKS(cuInit(0));
	WORKS(cuDeviceGet(&device, 0));
	WORKS(cuDevicePrimaryCtxRetain(&context, device));
	WORKS(cuCtxSetCurrent(context));
	WORKS(cuMemAlloc_v2(&p, 1 << 20));
	WORKS(cuStreamCreate(&stream, 0));
}

/* One after the other is given back, with a checkpoint tried before each. */
int main(int argc, char **argv)
{
	int before = argc > 1 && !strcmp(argv[1], "before"), n = 1;

	if (before)
		map_all();
	use_driver();
	if (!before)
		map_all();
	victim_ready();
	for (unsigned i = 0; i < COUNT; i++) {
		if (in_lower_window((unsigned long)memory[i])) {
			victim_say("has %d at %#lx", n++, (unsigned long)memory[i]);
			victim_wait();
		}
		CHECK(is_as_it_was(), "the program's memory has been written to");
		MUST(!munmap(memory[i], SIZE));
		memory[i] = NULL;
	}
	victim_say("none %d", n);
	victim_wait();
	use_driver();
	return victim_done();
}
