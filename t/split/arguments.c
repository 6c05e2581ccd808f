/*
 * Every function that passes through gets all its arguments, in registers and on the stack, and
 * gives its result back; what is refused is refused. Needs the echo driver (t/sim/echo.c) and
 * links with no library: it loads libcuda.so.1.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 24

static const struct {
	const char *name, *how;
	unsigned registers, stack, floats;
} functions[] = {
#define CALL(name, class, how, registers, stack, floats)                                       \
	{#name, #how, registers, stack, floats},
#include "cuda.calls.h"
#undef CALL
};

typedef int any_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t, float, float);

static int call(any_function *f, const uint64_t *w, const float *x)
{
	return f(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11],
		w[12], w[13], w[14], w[15], w[16], w[17], w[18], w[19], w[20], w[21], w[22],
		w[23], x[0], x[1]);
}

static int expected(unsigned index, const uint64_t *w, const float *x)
{
	uint64_t hash = index + 1;

	for (unsigned i = 0; i < functions[index].registers; i++)
		hash = hash * 0x9e3779b97f4a7c15 + w[i];
	for (unsigned i = 0; i < functions[index].stack; i++)
		hash = hash * 0x9e3779b97f4a7c15 + w[6 + i];
	for (unsigned i = 0; i < functions[index].floats; i++) {
		uint32_t bits;

		memcpy(&bits, &x[i], 4);
		hash = hash * 0x9e3779b97f4a7c15 + bits;
	}
	return hash >> 40 | 0x40000000;
}

/* Returns 0 when the call went as it must. */
static int check_function(void *library, unsigned index, int split)
{
	any_function *f = (any_function *)dlsym(library, functions[index].name);
	float x[2] = {index + 0.5f, index + 0.25f};
	uint64_t w[MAX_WORDS];
	int result, wanted;

	for (unsigned i = 0; i < MAX_WORDS; i++)
		w[i] = 0x1234567800000000ul * (i + 3) + index * 1000003ul + i;
	if (!f) {
		printf("%s: not there\n", functions[index].name);
		return 1;
	}
	/* Tested by themselves: callbacks.c, lookup.c, objects.c, memory.c */
	if (split && (!strcmp(functions[index].how, "body") ||
			     !strcmp(functions[index].how, "record") ||
			     !strcmp(functions[index].how, "callback")))
		return 0;
	wanted = expected(index, w, x);
	if (split && !strcmp(functions[index].how, "refuse"))
		wanted = 801;
	result = call(f, w, x);
	if (result != wanted)
		printf("%s: %d, not %d\n", functions[index].name, result, wanted);
	return result != wanted;
}

int main(int argc, char **argv)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int split = argc > 1 && !strcmp(argv[1], "split"), bad = 0, count = 0;

	if (!library) {
		printf("%s\n", dlerror());
		return 1;
	}
	for (unsigned i = 0; i < sizeof(functions) / sizeof(functions[0]); i++, count++)
		bad += check_function(library, i, split);
	printf("%d of %d functions wrong\n", bad, count);
	return bad != 0;
}
