/*
 * memory REPORT MIB THREADS [COMPRESSIBLE] - hold MIB of random memory in THREADS threads, and tick.
 *
 * One thread reads the clock as fast as it can and notes the largest gap between two
 * readings: a pause as the program itself sees it. The others wake every 10 ms and write a
 * word, each in its own part of the memory. COMPRESSIBLE per cent of the pages hold numbers below 256 in
 * words of eight bytes. Asked to by REPORT, the clock's thread writes a word to each of some pages, spread
 * evenly. Runs until it is killed.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench/program.h"
#include "bench/report.h"

static uint64_t *memory;
static size_t memory_words, words_per_thread;

#define PAGE_WORDS ((size_t)512)

/* One page of each hundred / percent, as nearly as whole pages can be. */
static int is_chosen(size_t page, size_t percent)
{
	return page * percent / 100 != (page + 1) * percent / 100;
}

/* But for the compressible pages nothing a compressor or a search for equal blocks could use (splitmix64). */
static void fill_random(uint64_t *words, size_t count, size_t compressible)
{
	uint64_t state = 1;

	for (size_t i = 0; i < count; i++) {
		uint64_t z = state += 0x9e3779b97f4a7c15;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
		words[i] = z ^ (z >> 31);
		if (is_chosen(i / PAGE_WORDS, compressible))
			words[i] &= 255;
	}
}

static void write_pages(size_t percent)
{
	for (size_t page = 0; page < memory_words / PAGE_WORDS; page++) {
		if (is_chosen(page, percent))
			memory[page * PAGE_WORDS]++;
	}
}

static void *write_now_and_then(void *arg)
{
	uint64_t *part = memory + (size_t)arg * words_per_thread;
	const struct timespec pause = {0, 10 * 1000 * 1000};

	for (size_t i = 0;; i = (i + 512) % words_per_thread) {
		part[i]++;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void tick(volatile struct report *report)
{
	uint64_t last = now();

	for (;;) {
		last = report_tick(report, last);
		if (report->dirty) {
			write_pages(report->dirty);
			report->dirty = 0;
			last = now();
		}
	}
}

int main(int argc, char **argv)
{
	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: memory REPORT MIB THREADS [COMPRESSIBLE]\n");
		return 2;
	}
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	size_t size = strtoull(argv[2], NULL, 10) << 20, threads = strtoull(argv[3], NULL, 10);

	must(fd >= 0 && ftruncate(fd, 4096) == 0, argv[1]);
	volatile struct report *report =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	must(report != MAP_FAILED, "mmap");
	close(fd);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(memory != MAP_FAILED, "mmap");
	memory_words = size / sizeof(*memory);
	fill_random(memory, memory_words, argc == 5 ? strtoull(argv[4], NULL, 10) : 0);
	words_per_thread = memory_words / threads;
	for (size_t i = 1; i < threads; i++) {
		pthread_t thread;

		must(pthread_create(&thread, NULL, write_now_and_then, (void *)i) == 0,
			"thread");
	}
	report->ready = 1;
	tick(report);
}
