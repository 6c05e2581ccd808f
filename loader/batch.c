/*
 * Runs inside the target: no libc, no memory but the stack and the batch.
 */
#include "shared/batch.h"

#include <stddef.h>

#include "ckpt/image.h"
#include "loader/check_blocks.h"
#include "loader/copier.h"
#include "loader/system_call.h"

#define SYS_pread64 17
#define SYS_exit    60

long batch_clone(void *args, unsigned long size);
__attribute__((noreturn)) void batch_run(struct batch *b);

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

/* From the buffer to @at. A page that is there already, of zeros since somebody else has read from it (/proc/PID/mem), is
 * read into. */
static long copy_piece(const struct batch *b, unsigned long fd, unsigned long at,
	unsigned long size, unsigned long offset)
{
	unsigned long done = 0;

	while (done < size) {
		long n = copier_put(b->copier, at + done, b->buffer + done, size - done);

		if (is_error(n))
			return n;
		done += n;
		if (done == size)
			break;
		n = read_whole(fd, at + done, IMAGE_BLOCK, offset + done);
		if (is_error(n))
			return n;
		done += IMAGE_BLOCK;
	}
	return size;
}

/* Fill @size bytes at @at with what the file of @c has at @offset. */
static long fill_piece(const struct batch *b, const struct batch_call *c, unsigned long at,
	unsigned long size, unsigned long offset)
{
	int copies = c->check == BATCH_COPY_BLOCKS || c->check == BATCH_COPY_WHOLE;
	long result;

	if (!copies || !copier_is_open(b->copier))
		return read_whole(c->args[0], at, size, offset);
	result = read_whole(c->args[0], b->buffer, size, offset);
	return is_error(result) ? result : copy_piece(b, c->args[0], at, size, offset);
}

/* What counts is what the memory holds in the end. In pieces that are still in the processor's
 * cache when they are compared. @hashes: NULL: nothing to compare with. */
static long fill_memory(
	const struct batch *b, struct batch_call *c, const unsigned char *hashes)
{
	unsigned long at = c->args[1], left = c->args[2], offset = c->args[3], size, good;
	long result;

	for (; left; left -= size) {
		size = left < BATCH_PIECE ? left : BATCH_PIECE;
		result = c->check == BATCH_THERE ? 0 : fill_piece(b, c, at, size, offset);
		if (is_error(result))
			return result;
		good = hashes ? check_blocks_with(c->args[5], (const unsigned char *)at,
					size / IMAGE_BLOCK, hashes)
			      : size / IMAGE_BLOCK;
		if (good != size / IMAGE_BLOCK) {
			c->expect = at + good * IMAGE_BLOCK;
			return -BATCH_DAMAGED;
		}
		at += size;
		offset += size;
		hashes += hashes ? size / IMAGE_BLOCK * IMAGE_HASH_SIZE : 0;
	}
	return c->args[2];
}

static int run_call(const struct batch *b, struct batch_call *c)
{
	switch (c->check) {
	case BATCH_WHOLE:
	case BATCH_COPY_WHOLE:
		c->result = fill_memory(b, c, NULL);
		return !is_error(c->result);
	case BATCH_BLOCKS:
	case BATCH_COPY_BLOCKS:
	case BATCH_THERE:
		c->result = fill_memory(b, c, (const unsigned char *)c->args[4]);
		return !is_error(c->result);
	case BATCH_COPIER:
		copier_open(b->copier, (const unsigned long *)c->args[0], c->args[1]);
		return 1;
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

	for (i = 0; i < b->count && run_call(b, &b->calls[i]); i++)
		b->done = i + 1;
	copier_leave(b->copier);
	if (b->end == BATCH_EXIT) {
		unsigned long exit_call[7] = {SYS_exit, b->done != b->count};

		batch_syscall(exit_call);
	}
	for (;;)
		__asm__ volatile("int3");
}
