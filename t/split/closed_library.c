/* The driver's library is used, and closed: by a runtime library inside of the program, say.
 * What it has been asked for stays, as does what is to bring it back. */
#include <dlfcn.h>

#include "t/victim/victim.h"

static int want = 13000;

void victim_hurt(void)
{
	want = 0;
}

static void use(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned), (*get)(int *), version = 0;

	MUST(library);
	init = (int (*)(unsigned))dlsym(library, "cuInit");
	get = (int (*)(int *))dlsym(library, "cuDriverGetVersion");
	MUST(init && get);
	CHECK(!init(0), "cuInit fails");
	CHECK(!get(&version) && version == want, "version %d", version);
	dlclose(library);
}

int main(void)
{
	use();
	victim_ready();
	victim_wait();
	use();
	return victim_done();
}
