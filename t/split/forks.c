/* Children: of a process that has used the driver they get its error; of one that has only
 * asked for the version they can use it; and fork, vfork, system and a bare clone work while
 * other threads call. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/split/setup.h"

int cuGetErrorString(int error, const char **text);

static volatile int stop;
static const char *text; /* of an error */

/* Exit status of a child that runs @run. */
static int child(int (*run)(void), int bare)
{
	pid_t pid = bare ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	int status;

	if (!pid) {
		alarm(20);
		_exit(run());
	}
	waitpid(pid, &status, 0);
	if (status) /* a child that a signal has ended could not say so */
		fprintf(stderr, "a child has ended with status %#x\n", status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

static int use(void)
{
	uint32_t host[64] = {0};
	CUdeviceptr memory = 0;

	set_up();
	OK(cuGetErrorString(700, &text));
	OK(cuMemAlloc_v2(&memory, sizeof(host)));
	OK(launch(kernel("count"), 64, memory, 5, 0, NULL));
	OK(cuMemcpyDtoH_v2(host, memory, sizeof(host)));
	CHECK(host[63] == 68);
	return wrong;
}

static int refused(void)
{
	void *current;

	CHECK(text && *text); /* which its parent was given */
	CHECK_RESULT(cuInit(0), 3);
	CHECK_RESULT(cuCtxGetCurrent(&current), 3);
	return wrong;
}

/* A child that uses the driver has children of its own. */
static int use_and_fork(void)
{
	return use() || child(refused, 0);
}

static void *call(void *argument)
{
	void *current;

	while (!stop)
		OK(cuCtxGetCurrent(&current));
	return NULL;
}

int main(void)
{
	char *const arguments[] = {"true", NULL};
	pthread_t threads[4];
	int version, status;
	pid_t pid;

	CHECK(child(use, 0) == 0);
	OK(cuDriverGetVersion(&version));
	CHECK(child(use, 0) == 0);
	CHECK(child(use_and_fork, 0) == 0);
	CHECK(child(use, 1) == 0);
	CHECK(use() == 0);
	CHECK(child(refused, 0) == 0);
	CHECK(child(refused, 1) == 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, call, NULL);
	for (int i = 0; i < 100; i++)
		CHECK(child(refused, i & 1) == 0);
	CHECK(system("true") == 0);
	CHECK(posix_spawnp(&pid, "true", NULL, NULL, arguments, NULL) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK(use() == 0);
	printf("done\n");
	return wrong != 0;
}
