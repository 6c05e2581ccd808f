/*
 * check_blocks.h - compares blocks in memory with their hashes (XXH3-128), for each kind of vector
 * unit. Which one to use is the supervisor's to say: a batch's call names it.
 *
 * This header stands alone: the loader has no libc.
 */
#ifndef LOADER_CHECK_BLOCKS_H
#define LOADER_CHECK_BLOCKS_H

/* How many of the @blocks blocks at @data are as @hashes says, counted to the first that is
 * not. */
unsigned long check_blocks_sse2(
	const unsigned char *data, unsigned long blocks, const unsigned char *hashes);
unsigned long check_blocks_avx2(
	const unsigned char *data, unsigned long blocks, const unsigned char *hashes);
unsigned long check_blocks_avx512(
	const unsigned char *data, unsigned long blocks, const unsigned char *hashes);

#endif
