/*
 * hugetlb_file.c - the size of the pages, and writing through a mapping.
 */
#include "supervisor/fd/hugetlb_file.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "lib/util.h"

unsigned fd_huge_shift(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) || fs.f_type != HUGETLBFS_MAGIC)
		return 0;
	return __builtin_ctzll(fs.f_bsize);
}

/* A shared mapping reserves its pages: mmap(2) fails where there are none, rather than that
 * touching them raises SIGBUS. */
int fd_huge_put(
	int fd, unsigned shift, uint64_t at, const void *data, size_t size, struct err *e)
{
	uint64_t page = 1ull << shift, start = align_down(at, page);
	uint64_t end = align_up(at + size, page);
	char *p = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_SHARED, fd, start);

	if (p == MAP_FAILED)
		return err_set(e, errno,
			"cannot allocate %llu huge pages of %llu KiB (are enough reserved? see "
			"vm.nr_hugepages)",
			(unsigned long long)((end - start) >> shift),
			(unsigned long long)(page >> 10));
	memcpy(p + (at - start), data, size);
	munmap(p, end - start);
	return 0;
}
