/*
 * visible GPU...: for each a process of its own that sees only that; this one asks for its GPUs at the end only. At the
 * signal all say which they have.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "t/split/driver_victim.h"

int cuDeviceGetUuid_v2(unsigned char uuid[16], int device);

void victim_hurt(void)
{
	CHECK(0, "it has been hurt");
}

static void say(const char *who)
{
	unsigned char uuid[16] = "";

	OK(cuDeviceGetUuid_v2(uuid, 0));
	victim_say("devices %s %c", who, uuid[0]);
}

static void work(int ready)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	MUST(!sigprocmask(SIG_BLOCK, &set, NULL));
	WORKS(cuInit(0));
	MUST(write(ready, "", 1) == 1);
	MUST(!sigwait(&set, &sig));
	say("worker");
	_exit(0);
}

static pid_t start(char *program, char *gpu, int ready)
{
	pid_t pid = fork();
	char number[12];

	if (pid)
		return pid;
	snprintf(number, sizeof(number), "%d", ready);
	setenv("CUDA_VISIBLE_DEVICES", gpu, 1);
	execl("/proc/self/exe", program, "worker", number, NULL);
	_exit(2);
}

int main(int argc, char **argv)
{
	int ends[2], version, count = argc - 1, status;
	pid_t workers[4];
	char byte;

	if (argc > 2 && !strcmp(argv[1], "worker"))
		work(atoi(argv[2]));
	MUST(count <= 4 && !pipe(ends));
	for (int i = 0; i < count; i++) {
		workers[i] = start(argv[0], argv[i + 1], ends[1]);
		MUST(workers[i] > 0 && read(ends[0], &byte, 1) == 1);
	}
	OK(cuDriverGetVersion(&version));
	victim_ready();
	victim_wait();
	for (int i = 0; i < count; i++) {
		kill(workers[i], SIGUSR1);
		CHECK(waitpid(workers[i], &status, 0) == workers[i] && !status, "status %#x",
			status);
	}
	OK(cuInit(0));
	say("main");
	return victim_done();
}
