/* The loader's batch with a copier (loader/batch.c, loader/copier.c): memory is filled with what the file has, also where
 * somebody's read has put a page of zeros into it already. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/unit/tap.h"

#include "loader/batch.c"
#include "loader/copier.c"

#define PAGES      100
#define FILLED     (PAGES * 4096ul)
#define BUFFERS_AT 0x200000000000ul

/* Shared with the child. */
static struct {
	struct batch_copier copier;
	unsigned long ranges[2];
	int opened;
	int same;
} * shared;

static unsigned char *memory, *contents;

unsigned long check_blocks_sse2(
	const unsigned char *data, unsigned long blocks, const unsigned char *hashes)
{
	return !hashes || memcmp(data, contents + (data - memory), blocks * 4096) ? 0 : blocks;
}

unsigned long check_blocks_avx2(
	const unsigned char *data, unsigned long blocks, const unsigned char *hashes)
{
	return check_blocks_sse2(data, blocks, hashes);
}

unsigned long check_blocks_avx512(
	const unsigned char *data, unsigned long blocks, const unsigned char *hashes)
{
	return check_blocks_sse2(data, blocks, hashes);
}

long batch_clone(void *args, unsigned long size)
{
	(void)args;
	return -(long)size;
}

/* What has been filled is looked at before the thread's end. */
long batch_syscall(const unsigned long *w)
{
	register unsigned long r10 __asm__("r10") = w[4];
	register unsigned long r8 __asm__("r8") = w[5];
	register unsigned long r9 __asm__("r9") = w[6];
	long result;

	if (w[0] == SYS_exit)
		shared->same = !memcmp(memory, contents, FILLED);
	if (w[0] == SYS_ioctl && w[2] == UFFDIO_REGISTER)
		shared->opened = 1;
	__asm__ volatile(
		"syscall"
		: "=a"(result)
		: "a"(w[0]), "D"(w[1]), "S"(w[2]), "d"(w[3]), "r"(r10), "r"(r8), "r"(r9)
		: "rcx", "r11", "memory");
	return result;
}

/* In a child, which has read the @count pages @looked before. Its status. */
static int fill(FILE *file, const size_t *looked, size_t count)
{
	struct batch *b = calloc(1, sizeof(*b) + 2 * sizeof(b->calls[0]));
	int status;
	pid_t pid;

	shared->copier = (struct batch_copier){-1, 1, BUFFERS_AT, BATCH_PIECE};
	shared->ranges[0] = (unsigned long)memory;
	shared->ranges[1] = (unsigned long)memory + FILLED;
	shared->opened = shared->same = 0;
	b->count = 2;
	b->end = BATCH_EXIT;
	b->copier = &shared->copier;
	b->buffer = BUFFERS_AT;
	b->calls[0].check = BATCH_COPIER;
	b->calls[0].args[0] = (unsigned long)shared->ranges;
	b->calls[0].args[1] = 1;
	b->calls[1].check = BATCH_COPY_BLOCKS;
	b->calls[1].args[0] = fileno(file);
	b->calls[1].args[1] = (unsigned long)memory;
	b->calls[1].args[2] = FILLED;
	b->calls[1].args[4] = (unsigned long)contents; /* for check_blocks_sse2() */
	pid = fork();
	if (!pid) {
		for (size_t i = 0; i < count; i++)
			(void)*(volatile unsigned char *)(memory + looked[i] * 4096);
		batch_run(b);
	}
	free(b);
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

int main(void)
{
	static const size_t looked[] = {0, 7, 8, 31, 32, 63, PAGES - 1};
	FILE *file = tmpfile();

	contents = malloc(FILLED);
	for (size_t i = 0; i < FILLED; i++)
		contents[i] = i / 4096 + i % 251;
	memory = mmap(NULL, FILLED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		-1, 0);
	if (!file || memory == MAP_FAILED || shared == MAP_FAILED ||
		fwrite(contents, 1, FILLED, file) != FILLED || fflush(file) ||
		madvise(memory, FILLED, MADV_NOHUGEPAGE))
		return 1;
	ok(!fill(file, NULL, 0) && shared->same, "missing pages are filled");
	if (!shared->opened) {
		printf("ok %d - pages of zeros are overwritten # SKIP no userfaultfd\n",
			++tap_count);
		return done_testing();
	}
	ok(!fill(file, looked, sizeof(looked) / sizeof(looked[0])) && shared->same,
		"pages of zeros are overwritten");
	return done_testing();
}
