/*
 * huge_code [off]: the code of a driver that has much of it (t/sim/large) lies on huge pages, where
 * there are such and the process may have them, and works.
 */
#include <sys/mman.h>
#include <sys/prctl.h>

#include "shared/address_windows.h"
#include "t/split/driver_victim.h"

#define CODE (4 * MIB) /* that much of the driver's is whole pages */

/* The line of smaps that begins with @name, of the mapping that lies in the lower half, holds
 * code of no file and is large. */
static char *of_code(const char *name, unsigned long *address)
{
	static char line[500];
	FILE *f = fopen("/proc/self/smaps", "r");
	int inside = 0;

	while (fgets(line, sizeof(line), f)) {
		unsigned long start, end, inode;
		char rights[5];

		if (sscanf(line, "%lx-%lx %4s %*x %*s %lu", &start, &end, rights, &inode) ==
			4) {
			inside = in_lower_window(start) && end - start == CODE && !inode &&
				 !strcmp(rights, "r-xp");
			if (inside)
				*address = start;
		} else if (inside && !strncmp(line, name, strlen(name))) {
			fclose(f);
			return line;
		}
	}
	fclose(f);
	return NULL;
}

void victim_hurt(void)
{
	unsigned long address;

	if (of_code("VmFlags:", &address))
		madvise((void *)address, CODE, MADV_NOHUGEPAGE);
}

static int off;

static void check_huge_pages(void)
{
	unsigned long address = 1;
	const char *flags = of_code("VmFlags:", &address);

	if (off) {
		CHECK(!flags, "a copy of the code that serves nobody");
		return;
	}
	CHECK(flags, "no code in memory of its own");
	CHECK(flags && strstr(flags, " hg "), "it is not to have huge pages");
	CHECK(address % (2 * MIB) == 0, "it begins at %lx", address);
}

static int are_to_be_had(void)
{
	char text[100] = "[never]";
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");

	return f && fgets(text, sizeof(text), f) && !strstr(text, "[never]") &&
	       prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) != 1;
}

int main(int argc, char **argv)
{
	uint32_t words[100] = {0};
	CUdeviceptr memory;
	void *context;

	if (!are_to_be_had())
		victim_skip("this machine has no huge pages");
	off = argc > 1;
	MUST(!off || !prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	WORKS(cuInit(0));
	WORKS(cuDevicePrimaryCtxRetain(&context, 0));
	WORKS(cuCtxSetCurrent(context));
	WORKS(cuMemAlloc_v2(&memory, sizeof(words)));
	WORKS(cuMemsetD32_v2(memory, 7, 100));
	check_huge_pages();
	victim_ready();
	victim_wait();
	check_huge_pages();
	OK(cuMemcpyDtoH_v2(words, memory, sizeof(words)));
	CHECK(words[0] == 7 && words[99] == 7, "device memory holds %u and %u", words[0],
		words[99]);
	return victim_done();
}
