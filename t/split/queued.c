/*
 * queued: threads that each have kernels, copies and functions of the program queued on two
 * streams all the time, while the program is checkpointed and restarted. None of them waits
 * in the driver, so a checkpoint finds the streams at work.
 */
#include "t/split/driver_victim.h"

#define TRY(call) wrong += !!(call)
#define LANES     8
#define WORDS     64
#define STEPS     10

struct lane {
	void *first, *second, *half,
		*whole; /* streams, and events that one waits for the other by */
	CUdeviceptr data;
	uint32_t *in, *out; /* pinned */
	uint32_t expected[WORDS];
	atomic_bool looked;
	atomic_long rounds;
};

static struct lane lanes[LANES];
static void *context, *scale, *pause_kernel;
static atomic_int wrong;
static atomic_bool stop;

void victim_hurt(void)
{
	wrong++;
}

/* On a thread of the program's own choice, when the second stream has come so far. */
static void look_at_lane(void *argument)
{
	struct lane *l = argument;

	wrong += !!memcmp(l->out, l->expected, sizeof(l->expected));
	l->looked = true;
}

static void run(
	void *kernel, unsigned threads, uint64_t a, uint64_t b, uint64_t c, void *stream)
{
	TRY(cuLaunchKernel(
		kernel, threads, 1, 1, 1, 1, 1, 0, stream, (void *[]){&a, &b, &c}, NULL));
}

static void queue(struct lane *l, uint32_t seed)
{
	memset(l->out, 0, sizeof(l->expected));
	l->looked = false;
	for (uint32_t i = 0; i < WORDS; i++)
		l->in[i] = l->expected[i] = seed + i;
	TRY(cuMemcpyHtoDAsync_v2(l->data, l->in, sizeof(l->expected), l->first));
	for (uint32_t step = 0; step < STEPS; step++) {
		run(pause_kernel, 1, 1000, 0, 0, l->first);
		run(scale, WORDS, l->data, 3, step, l->first);
		for (uint32_t i = 0; i < WORDS; i++)
			l->expected[i] = l->expected[i] * 3 + step;
	}
	TRY(cuEventRecord(l->half, l->first));
	TRY(cuStreamWaitEvent(l->second, l->half, 0));
	TRY(cuMemcpyDtoHAsync_v2(l->out, l->data, sizeof(l->expected), l->second));
	TRY(cuLaunchHostFunc(l->second, look_at_lane, l));
	TRY(cuEventRecord(l->whole, l->second));
	TRY(cuStreamWaitEvent(l->first, l->whole, 0));
}

static void *work(void *argument)
{
	struct lane *l = argument;
	struct timespec ms = {0, MSEC};

	TRY(cuCtxSetCurrent(context));
	for (uint32_t round = 0; !stop; round++) {
		queue(l, round * 1000003u);
		while (!l->looked || cuStreamQuery(l->second) || cuEventQuery(l->whole))
			nanosleep(&ms, NULL);
		l->rounds++;
	}
	return NULL;
}

static void make_lane(struct lane *l)
{
	WORKS(cuStreamCreate(&l->first, 1));
	WORKS(cuStreamCreate(&l->second, 1));
	WORKS(cuEventCreate(&l->half, 2));
	WORKS(cuEventCreate(&l->whole, 2));
	WORKS(cuMemAlloc_v2(&l->data, sizeof(l->expected)));
	WORKS(cuMemHostAlloc((void **)&l->in, sizeof(l->expected), 0));
	WORKS(cuMemHostAlloc((void **)&l->out, sizeof(l->expected), 0));
}

static void await_progress(void)
{
	struct timespec ms = {0, MSEC};

	for (int i = 0; i < LANES; i++)
		for (long before = lanes[i].rounds; lanes[i].rounds < before + 2;)
			nanosleep(&ms, NULL);
}

int main(void)
{
	pthread_t threads[LANES];
	void *module;

	WORKS(cuInit(0));
	WORKS(cuDevicePrimaryCtxRetain(&context, 0));
	WORKS(cuCtxSetCurrent(context));
	WORKS(cuModuleLoadData(&module, "sim module"));
	WORKS(cuModuleGetFunction(&scale, module, "scale"));
	WORKS(cuModuleGetFunction(&pause_kernel, module, "sleep"));
	for (int i = 0; i < LANES; i++) {
		make_lane(&lanes[i]);
		MUST(!pthread_create(&threads[i], NULL, work, &lanes[i]));
	}
	await_progress();
	victim_ready();
	victim_wait();
	await_progress();
	stop = true;
	for (int i = 0; i < LANES; i++)
		pthread_join(threads[i], NULL);
	CHECK(!wrong, "%d results are not as they should be", wrong);
	return victim_done();
}
