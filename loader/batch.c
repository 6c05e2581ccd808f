/*
 * Runs inside the target: no libc, no memory but the stack and the batch.
 */
#include "loader/batch.h"

#define SYS_pread64 17
#define SYS_exit    60

long batch_syscall(const unsigned long *nr_and_args);
long batch_clone(void *args, unsigned long size);
__attribute__((noreturn)) void batch_run(struct batch *b);

static int is_error(long result)
{
	return result < 0 && result > -4096;
}

/* pread64 returns less at will, and is started again by hand after a signal's interruption. */
static long read_whole(struct batch_call *c)
{
	unsigned long call[7] = {c->nr, c->args[0], c->args[1], c->args[2], c->args[3], 0, 0};
	unsigned long left = c->args[2];

	while (left) {
		long n = batch_syscall(call);

		if (n == -4) /* EINTR */
			continue;
		if (n <= 0)
			return n ? n : -5; /* EIO: the file has become shorter */
		call[2] += n;
		call[3] -= n;
		call[4] += n;
		left -= n;
	}
	return c->args[2];
}

static int run_call(struct batch_call *c)
{
	switch (c->check) {
	case BATCH_WHOLE:
		c->result = read_whole(c);
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
