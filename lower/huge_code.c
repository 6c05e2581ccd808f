/*
 * A library's code on huge pages.
 *
 * The driver's 16 MiB of code are called piece by piece, between other work that has had the
 * processor forget where they lie; on a virtual machine, finding a page again takes two page
 * tables. On huge pages there are few to be found (doc/split-process.md has what that makes
 * of a program's time). Page tables for files have such only on some kernels and file systems,
 * so the code is copied to memory of the process's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lower/runtime.h"

#define HUGE (2ul << 20)

/* Without huge pages a copy would serve nobody. */
static int are_to_be_had(void)
{
	char text[64] = "never";
	int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	/* 1: the process is to have none; 3: but where it asks for them */
	return n > 0 && !strstr(text, "[never]") && prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) != 1;
}

/* NULL: there is no memory for it, or it may not be made executable. */
static void *copy_of(const void *code, size_t size)
{
	void *copy =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return NULL;
	if (!madvise(copy, size, MADV_HUGEPAGE)) {
		memcpy(copy, code, size);
		if (!mprotect(copy, size, PROT_READ | PROT_EXEC))
			return copy;
	}
	munmap(copy, size);
	return NULL;
}

int huge_code(uintptr_t start, uintptr_t end)
{
	uintptr_t first = (start + HUGE - 1) & -HUGE, last = end & -HUGE;
	size_t size = last - first;
	static int lost;
	void *copy;

	if (lost || first >= last || !are_to_be_had())
		return lost;
	copy = copy_of((void *)first, size);
	/* What was there is gone when this fails. Not by mremap(3): UCX, which MPI libraries
	 * use, puts a function of its own there (1.13) that has no fifth argument, and the copy
	 * would be placed at address 0, over a program that is linked to be there. */
	if (copy && syscall(SYS_mremap, copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
			    first) == -1)
		lost = -errno;
	return lost;
}
