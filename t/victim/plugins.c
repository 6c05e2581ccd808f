/* A library loaded by dlopen, and one more after the restart. */
#include <dlfcn.h>

#include "victim.h"

static int (*call)(int);

void victim_hurt(void)
{
	call(1);
}

int main(int argc, char **argv)
{
	void *library, *more;

	library = dlopen(argc > 1 ? argv[1] : "./plugin.so", RTLD_NOW);
	if (!library)
		victim_skip("the library is not there");
	call = (int (*)(int))dlsym(library, "plugin_call");
	MUST(call && call(5) == 5);
	victim_ready();
	victim_wait();
	CHECK(call(2) == 7, "the library's data");
	CHECK((int (*)(int))dlsym(library, "plugin_call") == call, "dlsym");
	more = dlopen("libcrypt.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!more)
		more = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
	CHECK(more, "%s", dlerror());
	CHECK(!dlclose(library), "%s", dlerror());
	return victim_done();
}
