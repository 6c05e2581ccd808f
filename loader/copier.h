/*
 * copier.h - fills missing pages by UFFDIO_COPY (man ioctl_userfaultfd): the kernel takes a new page and copies the
 * contents into it, where read(2) into missing pages makes a fault for each, and zeroes it before it is overwritten.
 *
 * This header stands alone: the loader has no libc.
 */
#ifndef LOADER_COPIER_H
#define LOADER_COPIER_H

#include "shared/batch.h"

/* Make the copier @k of the memory in @count @ranges, pairs of a first address and an end. Each is one mapping of
 * which no page is there. Where that cannot be done, as many containers forbid it, k->fd is -1 and nothing is changed. */
void copier_open(struct batch_copier *k, const unsigned long *ranges, unsigned long count);

/* Whether memory of its ranges has to be filled by it; @k: NULL, or such. */
int copier_is_open(const struct batch_copier *k);

/* Copy @size bytes at @from to @at, in one of the ranges. How many, in whole pages, fewer where a page is there already;
 * or -errno. */
long copier_put(
	const struct batch_copier *k, unsigned long at, unsigned long from, unsigned long size);

/* A batch does not need it any more. The last one closes it. */
void copier_leave(struct batch_copier *k);

#endif
