/* What a call down costs, of a function that does nothing (bench/noop/libcuda.c): for
 * bench/turns. In a loop; and as it is between other work, which has put other code and data
 * into the caches nearest to the processor. */
#include <dlfcn.h>
#include <stdint.h>
#include <x86intrin.h>

#include "bench/turns.h"

#define WORK_BYTES (192 * 1024)

/* 64 KiB of code: a jump in each line of it. */
static void other_code(void)
{
	__asm__ volatile(".rept 1024\n\tjmp 1f\n\t.balign 64\n1:\n\t.endr");
}

static void other_data(void)
{
	static volatile char data[WORK_BYTES];

	for (unsigned i = 0; i < WORK_BYTES; i += 64)
		data[i]++;
}

static uint64_t ticks(void)
{
	unsigned aux;
	uint64_t t = __rdtscp(&aux);

	_mm_lfence();
	return t;
}

static double nanoseconds_of_a_tick(void)
{
	double start = turns_now(), now;
	uint64_t first = ticks();

	do
		now = turns_now();
	while (now - start < 1e6);
	return (now - start) / (ticks() - first);
}

/* The time of each call by itself. */
static double cold(int (*function)(void *), int count)
{
	uint64_t sum = 0;

	for (int i = 0; i < count; i++) {
		uint64_t start;

		other_code();
		other_data();
		start = ticks();
		function(NULL);
		sum += ticks() - start;
	}
	return sum * nanoseconds_of_a_tick() / count;
}

int main(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*nothing)(void *) = NULL, (*with_stream)(void *) = NULL;

	if (library) {
		nothing = (int (*)(void *))dlsym(library, "cuDriverGetVersion");
		with_stream = (int (*)(void *))dlsym(library, "cuStreamQuery");
	}
	if (!nothing || !with_stream) {
		fprintf(stderr, "crossing: no libcuda.so.1 with these functions\n");
		return 1;
	}
	while (turns_next()) {
		TURNS_EACH("call", 1000000, nothing(NULL));
		TURNS_EACH("call with a handle", 1000000, with_stream(NULL));
		printf("call, caches cold %.2f\n", cold(nothing, 10000));
		printf("call with a handle, caches cold %.2f\n", cold(with_stream, 10000));
		turns_done();
	}
	return 0;
}
