/* second_library: another library of the lower half than the driver is first used behind a restart. */
#include <dlfcn.h>

#include "t/split/driver_victim.h"

void victim_hurt(void)
{
	victim_failures++;
}

int main(void)
{
	int (*init)(void), (*count_devices)(unsigned *);
	unsigned count = 0;
	void *library;

	OK(cuInit(0));
	victim_ready();
	victim_wait();
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	MUST(library);
	init = (int (*)(void))dlsym(library, "nvmlInit_v2");
	count_devices = (int (*)(unsigned *))dlsym(library, "nvmlDeviceGetCount_v2");
	OK(init());
	victim_say("second");
	victim_wait();
	OK(count_devices(&count));
	CHECK(count == 1, "%u devices", count);
	return victim_done();
}
