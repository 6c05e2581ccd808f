/* Linked with the driver's library: says whose it got at the end. */
#include <dlfcn.h>
#include <stdio.h>

#include "t/split/cuda_api.h"

int main(void)
{
	int version = 0;

	if (cuDriverGetVersion(&version) || version != 13000)
		printf("does not work\n");
	else
		printf("%s\n", dlsym(RTLD_DEFAULT, "trecr_cuda_found") ? "stub" : "real");
	return 0;
}
