/*
 * stateless [SIGNALS-PER-SECOND]: threads that ask the driver for what never changes, all the
 * time, while the program is checkpointed and restarted: a thread that sleeps in between, threads that
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
static int (*nvml_name)(void *, char *, unsigned), (*nvml_number)(void *, unsigned *);

void victim_hurt(void)
{
	wrong++;
}

/* What was found out first is what must be found out for ever. */
static struct facts {
	int version, count;
	size_t memory;
	char name[96], nvml_name[96];
	unsigned nvml_number; /* tells the flags, in a simulated driver */
} facts;

static bool find_facts(struct facts *f)
{
	return !cuDriverGetVersion(&f->version) && !cuDeviceGetCount(&f->count) &&
	       !cuDeviceGetName(f->name, sizeof(f->name), 0) &&
	       !cuDeviceTotalMem_v2(&f->memory, 0);
}

static void ask_for_facts(void)
{
	struct facts now = {0};

	wrong += !find_facts(&now) || now.version != facts.version ||
		 now.count != facts.count || now.memory != facts.memory ||
		 strcmp(now.name, facts.name);
}

static void ask_nvml(void)
{
	char name[96] = "";
	unsigned number = 0;

	wrong += nvml_name(nvml_device, name, sizeof(name)) || strcmp(name, facts.nvml_name);
	wrong += nvml_number(nvml_device, &number) || number != facts.nvml_number;
}

static void handler(int signal)
{
	int saved = errno, version = 0;

	wrong += cuDriverGetVersion(&version) || version != facts.version;
	handled++;
	errno = saved;
}

static void *ask_often(void *argument)
{
	atomic_long *count = argument;

	while (!stop) {
		ask_for_facts();
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
		ask_for_facts();
		ask_nvml();
		++*count;
	}
	return NULL;
}

static void *ask_once(void *argument)
{
	ask_for_facts();
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
	MUST(!((int (*)(unsigned))dlsym(library, "nvmlInitWithFlags"))(1));
	MUST(!((int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2"))(
		0, &nvml_device));
	nvml_name = (int (*)(void *, char *, unsigned))dlsym(library, "nvmlDeviceGetName");
	MUST(nvml_name && !nvml_name(nvml_device, facts.nvml_name, sizeof(facts.nvml_name)));
	nvml_number = (int (*)(void *, unsigned *))dlsym(library, "nvmlDeviceGetMinorNumber");
	MUST(nvml_number && !nvml_number(nvml_device, &facts.nvml_number));
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

	MUST(!cuInit(0) && find_facts(&facts));
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
	ask_for_facts();
	ask_nvml();
	stop = true;
	for (int i = 0; i < THREADS + 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(!wrong, "%d calls gave something else", wrong);
	return victim_done();
}
