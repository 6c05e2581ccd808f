/*
 * Runs inside the target: no libc, no memory but the stack and the batch.
 */
#include "shared/batch.h"

#include "ckpt/image.h"
#include "loader/check_blocks.h"

#define SYS_pread64 17
#define SYS_exit    60

#define PIECE (128ul << 10)

long batch_syscall(const unsigned long *nr_and_args);
long batch_clone(void *args, unsigned long size);
__attribute__((noreturn)) void batch_run(struct batch *b);

static int is_error(long result)
{
	return result < 0 && result > -4096;
}

/* pread64 returns less at will, and is started again by hand after a signal's interruption. */
static long read_whole(
	unsigned long fd, unsigned long at, unsigned long size, unsigned long offset)
{
	unsigned long call[7] = {SYS_pread64, fd, at, size, offset};

	while (call[3]) {
		long n = batch_syscall(call);

		if (n == -4) /* EINTR */
			continue;
		if (n <= 0)
			return n ? n : -5; /* EIO: the file has become shorter */
		call[2] += n;
		call[3] -= n;
		call[4] += n;
	}
	return size;
}

static unsigned long check_blocks_with(unsigned long unit, const unsigned char *data,
	unsigned long blocks, const unsigned char *hashes)
{
	switch (unit) {
	case BATCH_AVX512:
		return check_blocks_avx512(data, blocks, hashes);
	case BATCH_AVX2:
		return check_blocks_avx2(data, blocks, hashes);
	default:
		return check_blocks_sse2(data, blocks, hashes);
	}
}

/* What counts is what the memory holds in the end. In pieces that are still in the processor's
 * cache when they are compared. */
static long read_blocks(struct batch_call *c)
{
	unsigned long at = c->args[1], hashes = c->args[4], size, good;
	unsigned long left = c->args[2], offset = c->args[3];
	long result;

	for (; left; left -= size) {
		size = left < PIECE ? left : PIECE;
		result = c->check == BATCH_THERE ? 0 : read_whole(c->args[0], at, size, offset);
		if (is_error(result))
			return result;
		good = check_blocks_with(c->args[5], (const unsigned char *)at,
			size / IMAGE_BLOCK, (const unsigned char *)hashes);
		if (good != size / IMAGE_BLOCK) {
			c->expect = at + good * IMAGE_BLOCK;
			return -BATCH_DAMAGED;
		}
		at += size;
		offset += size;
		hashes += size / IMAGE_BLOCK * IMAGE_HASH_SIZE;
	}
	return c->args[2];
}

static int run_call(struct batch_call *c)
{
	switch (c->check) {
	case BATCH_WHOLE:
		c->result = read_whole(c->args[0], c->args[1], c->args[2], c->args[3]);
		return !is_error(c->result);
	case BATCH_BLOCKS:
	case BATCH_THERE:
		c->result = read_blocks(c);
		return !is_error(c->result);
	case BATCH_THREAD:
		c->result = batch_clone((void *)c->args[0], c->args[1]);
		return !is_error(c->result);
	case BATCH_EQUALS:
		c->result = batch_syscall(&c->nr);
		return (unsigned long)c->result == c->expect;
	case BATCH_ANY:
		c->result = batch_syscall(&c->nr);
		return 1;
	default:
		c->result = batch_syscall(&c->nr);
		return !is_error(c->result);
	}
}

void batch_run(struct batch *b)
{
	unsigned long i;

	for (i = 0; i < b->count && run_call(&b->calls[i]); i++)
		b->done = i + 1;
	if (b->end == BATCH_EXIT) {
		unsigned long exit_call[7] = {SYS_exit, b->done != b->count};

		batch_syscall(exit_call);
	}
	for (;;)
		__asm__ volatile("int3");
}
