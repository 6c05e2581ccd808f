/*
 * fd/hugetlb_file.h - files of hugetlbfs: memory in huge pages that several mappings share.
 * They have no write(2), and no page may be available for them.
 */
#ifndef SUPERVISOR_FD_HUGETLB_FILE_H
#define SUPERVISOR_FD_HUGETLB_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

/* Logarithm of the size of the pages of file @fd where it is one of hugetlbfs, else 0. */
unsigned fd_huge_shift(int fd);

/* Put @size bytes at @at of the file @fd with pages of 2^@shift, which is large enough. */
int fd_huge_put(
	int fd, unsigned shift, uint64_t at, const void *data, size_t size, struct err *e);

#endif
