/* hammer SECONDS: threads that call all the time, for a checkpoint to stop; with timer signals
 * whose handler calls too, and work on streams. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "t/split/setup.h"

static volatile int stop;
static void *count;

static void handler(int signal)
{
	int version = 0;

	cuDriverGetVersion(&version);
	if (version != 13000)
		wrong++;
}

static void *call(void *argument)
{
	void *current, *stream;
	CUdeviceptr memory;
	uint32_t last;
	unsigned flags;
	int device, active;

	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemAlloc_v2(&memory, 256));
	for (uint32_t i = 0; !stop; i++) {
		OK(cuCtxGetCurrent(&current));
		OK(cuCtxGetDevice(&device));
		OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
		CHECK(current == context && !device && !flags && active);
		if (i % 64)
			continue;
		OK(cuCtxSetCurrent(context));
		OK(launch(count, 64, memory, i, 0, stream));
		OK(cuStreamSynchronize(stream));
		OK(cuMemcpyDtoH_v2(&last, memory + 252, 4));
		CHECK(last == i + 63);
	}
	return NULL;
}

static void *sleep_now_and_then(void *argument)
{
	while (!stop)
		poll(NULL, 0, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	struct itimerval often = {{0, 3000}, {0, 3000}};
	pthread_t threads[6];

	set_up();
	count = kernel("count");
	signal(SIGALRM, handler);
	for (int i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, i < 4 ? call : sleep_now_and_then, NULL);
	printf("ready\n");
	fflush(stdout);
	setitimer(ITIMER_REAL, &often, NULL);
	for (time_t end = time(NULL) + atoi(argv[1]); time(NULL) < end;)
		handler(0);
	stop = 1;
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	printf("done\n");
	return wrong != 0;
}
