/*
 * stateless [SIGNALS-PER-SECOND]: threads that ask the driver for what never changes, all the
 * time, while the program is checkpointed and restarted: one that sleeps in between, ones that
 * come and go, and handlers that ask, too. A second library is in use, and its handles.
 */
#include <dlfcn.h>
#include <sys/time.h>

#include "t/split/cuda_api.h"
#include "t/victim/victim.h"

#define THREADS 4

int cuDeviceGetName(char *, int, int);
int cuDeviceTotalMem_v2(size_t *, int);

static atomic_bool stop;
static atomic_int wrong;
static atomic_long calls[THREADS + 2], handled;
static void *nvml_device;
static int (*nvml_name)(void *, char *, unsigned);

void victim_hurt(void)
{
	wrong++;
}

static void ask(void)
{
	int version = 0, count = 0;
	char name[32] = "";
	size_t memory = 0;

	wrong += cuDriverGetVersion(&version) || version != 13000;
	wrong += cuDeviceGetCount(&count) || count != 1;
	wrong += cuDeviceGetName(name, sizeof(name), 0) || strcmp(name, "Simulated");
	wrong += cuDeviceTotalMem_v2(&memory, 0) || memory != 8 * GIB;
}

static void ask_nvml(void)
{
	char name[32] = "";

	wrong += nvml_name(nvml_device, name, sizeof(name)) || strcmp(name, "Simulated");
}

static void handler(int signal)
{
	int saved = errno, version = 0;

	wrong += cuDriverGetVersion(&version) || version != 13000;
	handled++;
	errno = saved;
}

static void *ask_often(void *argument)
{
	atomic_long *count = argument;

	while (!stop) {
		ask();
		++*count;
	}
	return NULL;
}

static void *ask_seldom(void *argument)
{
	atomic_long *count = argument;
	struct timespec ms = {0, MSEC};

	while (!stop) {
		nanosleep(&ms, NULL);
		ask();
		ask_nvml();
		++*count;
	}
	return NULL;
}

static void *ask_once(void *argument)
{
	ask();
	return NULL;
}

static void *come_and_go(void *argument)
{
	atomic_long *count = argument;
	pthread_t thread;

	while (!stop) {
		MUST(!pthread_create(&thread, NULL, ask_once, NULL));
		pthread_join(thread, NULL);
		++*count;
	}
	return NULL;
}

static void load_nvml(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);

	MUST(library);
	MUST(!((int (*)(void))dlsym(library, "nvmlInit_v2"))());
	MUST(!((int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2"))(
		0, &nvml_device));
	nvml_name = (int (*)(void *, char *, unsigned))dlsym(library, "nvmlDeviceGetName");
	MUST(nvml_name);
}

/* Every thread must get on, and handlers must come. */
static void await_progress(int rate)
{
	long before[THREADS + 2], handled_before = handled;
	struct timespec ms = {0, MSEC};

	for (int i = 0; i < THREADS + 2; i++)
		before[i] = calls[i];
	for (int i = 0; i < THREADS + 2; i++)
		while (calls[i] < before[i] + 3)
			nanosleep(&ms, NULL);
	while (rate && handled < handled_before + 3)
		nanosleep(&ms, NULL);
}

int main(int argc, char **argv)
{
	int rate = argc > 1 ? atoi(argv[1]) : 0;
	struct itimerval often = {
		{0, rate ? 1000000 / rate : 0}, {0, rate ? 1000000 / rate : 0}};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	pthread_t threads[THREADS + 2];

	MUST(!cuInit(0));
	load_nvml();
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < THREADS; i++)
		MUST(!pthread_create(&threads[i], NULL, ask_often, &calls[i]));
	MUST(!pthread_create(&threads[THREADS], NULL, ask_seldom, &calls[THREADS]));
	MUST(!pthread_create(&threads[THREADS + 1], NULL, come_and_go, &calls[THREADS + 1]));
	await_progress(rate);
	victim_ready();
	victim_wait();
	await_progress(rate);
	ask();
	ask_nvml();
	stop = true;
	for (int i = 0; i < THREADS + 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(!wrong, "%d calls gave something else", wrong);
	return victim_done();
}
