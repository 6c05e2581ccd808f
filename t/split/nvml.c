/* Two libraries of the lower half in one program; a function that the lower half's lacks. */
#include <dlfcn.h>

#include "t/split/setup.h"

int main(void)
{
	void *library, *device;
	unsigned count = 0;
	char name[32] = "";

	set_up();
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	CHECK(library);
	if (!library)
		return 1;
	CHECK(!dlsym(library, "trecr_nvml_found") == !is_split());
	CHECK_RESULT(((int (*)(unsigned *))dlsym(library, "nvmlDeviceGetCount_v2"))(&count), 1);
	OK(((int (*)(void))dlsym(library, "nvmlInit_v2"))());
	OK(((int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2"))(
		0, &device));
	OK(((int (*)(void *, char *, unsigned))dlsym(library, "nvmlDeviceGetName"))(
		device, name, sizeof(name)));
	CHECK(!strcmp(name, "Simulated"));
	if (is_split())
		CHECK_RESULT(((int (*)(void *, unsigned *))dlsym(
				     library, "nvmlDeviceGetPowerUsage"))(device, &count),
			13);
	OK(cuCtxSynchronize());
	printf("done\n");
	return wrong != 0;
}
