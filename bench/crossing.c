/* What a call down costs, of a function that does nothing (bench/noop/libcuda.c): for
 * bench/turns. */
#include <dlfcn.h>

#include "bench/turns.h"

int main(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*nothing)(int *) = NULL, (*with_stream)(void *) = NULL, version;

	if (library) {
		nothing = (int (*)(int *))dlsym(library, "cuDriverGetVersion");
		with_stream = (int (*)(void *))dlsym(library, "cuStreamQuery");
	}
	if (!nothing || !with_stream) {
		fprintf(stderr, "crossing: no libcuda.so.1 with these functions\n");
		return 1;
	}
	while (turns_next()) {
		TURNS_EACH("call", 1000000, nothing(&version));
		TURNS_EACH("call with a handle", 1000000, with_stream(NULL));
		turns_done();
	}
	return 0;
}
