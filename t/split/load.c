/* load WAY: loads the driver's library in one way and says whose function it got: "stub",
 * "real", or why it failed. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW);
	int (*f)(int *), version = 0;

	if (!library) {
		printf("fails\n");
		return 0;
	}
	f = (int (*)(int *))dlsym(library, "cuDriverGetVersion");
	if (!f || f(&version) || version != 13000)
		printf("does not work\n");
	else
		printf("%s\n", dlsym(library, "trecr_cuda_found") ? "stub" : "real");
	return 0;
}
