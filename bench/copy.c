/*
 * copy FILE MIB THREADS - write MIB of random memory to a new file by as many threads, each its own part, and print the
 * milliseconds that it took: what a checkpoint of as much memory cannot be faster than. The file is removed.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "bench/program.h"

#define PIECE ((size_t)1 << 20)

static char *memory;
static size_t part;
static int fd;

static void *copy_part(void *arg)
{
	size_t end = ((size_t)arg + 1) * part;

	for (size_t at = (size_t)arg * part; at < end; at += PIECE)
		must(pwrite(fd, memory + at, PIECE, at) == (ssize_t)PIECE, "pwrite");
	return NULL;
}

int main(int argc, char **argv)
{
	size_t mib = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
	size_t count = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;

	if (count < 1 || count > 64 || mib % count) {
		fprintf(stderr,
			"usage: copy FILE MIB THREADS (1 to 64, of which MIB is a multiple)\n");
		return 2;
	}
	pthread_t threads[64];
	uint64_t start;

	memory = mmap(
		NULL, mib * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(memory != MAP_FAILED, "mmap");
	for (size_t i = 0; i < mib * PIECE; i += 256)
		must(getrandom(memory + i, 256, 0) == 256, "getrandom");
	part = mib / count * PIECE;
	start = now();
	fd = open(argv[1], O_WRONLY | O_CREAT | O_EXCL, 0600);
	must(fd >= 0, argv[1]);
	for (size_t i = 0; i < count; i++)
		must(pthread_create(&threads[i], NULL, copy_part, (void *)i) == 0, "thread");
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	close(fd);
	printf("%.1f\n", (now() - start) / 1e6);
	unlink(argv[1]);
	return 0;
}
