/*
 * What a kernel prints has its place among what the program prints, though the device is waited
 * for by a checkpoint, while the program's own text is still in a buffer.
 */
#include "t/split/driver_victim.h"

static int file;

void victim_hurt(void)
{
	printf("something else\n");
}

static void say(void *function, uint64_t number)
{
	WORKS(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL,
		(void *[]){&number, &number, &number}, NULL));
}

int main(void)
{
	static const char expected[] =
		"before\nnot waited\nkernel says 1\nkernel says 2\nafter\n"
		"kernel says 3\nend\n";
	void *context, *module, *function;
	char text[1000] = "";

	WORKS(cuInit(0));
	WORKS(cuDevicePrimaryCtxRetain(&context, 0));
	WORKS(cuCtxSetCurrent(context));
	WORKS(cuModuleLoadData(&module, "sim module\n"));
	WORKS(cuModuleGetFunction(&function, module, "print"));
	file = memfd_create("printed", 0);
	stdout = fdopen(file, "w");
	MUST(stdout);
	printf("before\n");
	say(function, 1);
	say(function, 2);
	victim_ready();
	victim_wait();
	cuCtxGetCurrent(&context); /* lets nothing out */
	CHECK(!cuStreamQuery(NULL), "the stream is not idle");
	printf("not waited\n");
	CHECK(!cuCtxSynchronize(), "it cannot be waited for");
	printf("after\n");
	say(function, 3);
	CHECK(!cuCtxSynchronize(), "it cannot be waited for");
	printf("end\n");
	fflush(stdout);
	MUST(pread(file, text, sizeof(text) - 1, 0) >= 0);
	CHECK(!strcmp(text, expected), "printed: %s", text);
	return victim_done();
}
