/* Data that the loader relocated and then made read-only: dirty, but not writable. */
#include <link.h>

#include "victim.h"

static int one(void)
{
	return 1;
}
static int two(void)
{
	return 2;
}
static int (*const volatile table[])(void) = {one, two};

static uint64_t sum;
static const char *start;
static size_t size;

void victim_hurt(void)
{
	char *page = (char *)((uintptr_t)start & ~4095ul);

	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	*(char *)(uintptr_t)start ^= 1;
}

static uint64_t sum_of(void)
{
	uint64_t x = 0;

	for (size_t i = 0; i < size; i++)
		x = x * 31 + (uint8_t)start[i];
	return x;
}

static int find(struct dl_phdr_info *info, size_t n, void *arg)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
			start = (char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			size = info->dlpi_phdr[i].p_memsz;
			return 1;
		}
	return 0;
}

int main(void)
{
	struct victim_vma v;

	dl_iterate_phdr(find, NULL);
	MUST(size > 0);
	sum = sum_of();
	victim_ready();
	victim_wait();
	CHECK(victim_vma(start, &v) && v.prot[1] == '-', "protection is %s", v.prot);
	CHECK(sum_of() == sum, "relocated data has changed");
	CHECK(table[0]() == 1 && table[1]() == 2, "functions through relocated pointers");
	return victim_done();
}
