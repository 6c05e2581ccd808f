/*
 * managed [freed]: managed memory and variables of that kind, made between contexts and
 * libraries of which some are no more, are where they were over checkpoints and restarts. With
 * "freed", a library with such a variable is no more.
 */
#include <string.h>

#include "t/split/driver_victim.h"

#define LARGE 40000000

static struct {
	CUdeviceptr address;
	size_t size;
} places[16];

static int count;
static void *contexts[5];

void victim_hurt(void)
{
	cuMemsetD32_v2(places[2].address, 0, 10);
}

static void *with_variable(const char *text)
{
	void *library = NULL;
	CUdeviceptr address = 0;
	size_t size = 0;

	WORKS(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	WORKS(cuLibraryGetManaged(&address, &size, library, "both"));
	places[count].address = address;
	places[count++].size = size;
	return library;
}

static void allocate(size_t size)
{
	CUdeviceptr address = 0;

	WORKS(cuMemAllocManaged(&address, size, 1));
	places[count].address = address;
	places[count++].size = size;
}

static void another_context(int i)
{
	WORKS(cuCtxCreate_v2(&contexts[i], 0, 0));
	WORKS(cuCtxSetCurrent(contexts[0]));
}

int main(int argc, char **argv)
{
	char *copy = malloc(LARGE);
	void *library;

	WORKS(cuInit(0));
	library = with_variable("sim module\n.global .attribute(.managed) .b8 both[400];\n");
	WORKS(cuDevicePrimaryCtxRetain(&contexts[0], 0));
	WORKS(cuCtxSetCurrent(contexts[0]));
	another_context(1);
	allocate(MIB);
	with_variable("sim module\n.global .attribute(.managed) .b8 both[40000000];\n"
		      ".global .attribute(.managed) .b8 another[100];\n");
	allocate(20 * MIB);
	for (int i = 2; i < 5; i++)
		another_context(i);
	allocate(30 * MIB);
	for (int i = 2; i < 5; i++)
		WORKS(cuCtxDestroy_v2(contexts[i]));
	allocate(30 * MIB);
	allocate(100);
	if (argc > 1 && !strcmp(argv[1], "freed"))
		WORKS(cuLibraryUnload(library));
	else
		library = NULL;
	for (int i = !!library; i < count; i++) {
		victim_fill(copy, places[i].size, i);
		WORKS(cuMemcpyHtoD_v2(places[i].address, copy, places[i].size));
	}
	victim_ready();
	victim_wait();
	for (int i = !!library; i < count; i++) {
		WORKS(cuMemcpyDtoH_v2(copy, places[i].address, places[i].size));
		SAME(copy, places[i].size, i, "managed memory");
		OK(cuMemsetD32_v2(places[i].address, 1, 10));
	}
	allocate(MIB);
	OK(cuMemsetD32_v2(places[count - 1].address, 1, MIB / 4));
	return victim_done();
}
