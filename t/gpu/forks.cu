/* Children of fork, before and after the driver is used. */
#include <sys/wait.h>
#include <unistd.h>

#include "t/gpu/gpu.h"

static void try_to_use(const char *who)
{
	int count = -1, version = -1;
	void *memory;
	cudaError_t r = cudaMalloc(&memory, 1 << 20);

	cudaDriverGetVersion(&version);
	printf("%s: %s, ", who, cudaGetErrorName(r));
	r = cudaGetDeviceCount(&count);
	printf("%s, version %d\n", cudaGetErrorName(r), version);
}

static void in_child(const char *who)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		try_to_use(who);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	printf("%s ended with %x\n", who, status);
}

int main(int argc, char **argv)
{
	in_child("child before anything");
	try_to_use("parent");
	in_child("child of a parent that has used the driver");
	try_to_use("parent, afterwards");
	fflush(stdout);
	if (argc < 2)
		execl("/proc/self/exe", "forks", "again", NULL);
	return 0;
}
