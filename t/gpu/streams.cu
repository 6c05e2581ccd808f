/*
 * streams ROUNDS [signals]: 16 threads with a stream each: kernels, copies of pinned memory in
 * flight and host functions, if asked for under a signal every millisecond. Prints hashes that do
 * not depend on when it is checkpointed.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

#include "t/gpu/gpu.h"

#define THREADS 16
#define N       32768
#define BLOCK   256

static int rounds, signals;
static pthread_barrier_t turn;

struct worker {
	pthread_t thread;
	uint32_t number, calls, hash;
	uint32_t *address; /* of what is the thread's own */
};

static __thread uint32_t mine;

__global__ void mix(uint32_t *a, const uint32_t *b, uint32_t round)
{
	uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;

	a[i] = a[i] * 1664525u + b[(i * 5 + round) % N];
}

static void handle(int signal)
{
	int device;

	if (__atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED) % 32 == 0)
		cudaGetDevice(&device);
}

static void called(void *argument)
{
	((struct worker *)argument)->calls++;
}

static void *work(void *argument)
{
	struct worker *w = (struct worker *)argument;
	uint32_t *a, *b, *in, *out;
	cudaStream_t stream;

	mine = w->number;
	w->address = &mine;
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaMalloc(&a, N * 4));
	OK(cudaMalloc(&b, N * 4));
	OK(cudaMallocHost(&in, N * 4));
	OK(cudaMallocHost(&out, N * 4));
	for (int i = 0; i < N; i++)
		in[i] = i * 2654435761u + w->number;
	OK(cudaMemset(a, 1, N * 4));
	OK(cudaDeviceSynchronize()); /* the stream does not wait for that by itself */
	for (int round = 0; round < rounds; round++) {
		if (round % (rounds / 8) == 0) {
			OK(cudaStreamSynchronize(stream));
			pthread_barrier_wait(&turn);
		}
		OK(cudaMemcpyAsync(b, in, N * 4, cudaMemcpyHostToDevice, stream));
		mix<<<N / BLOCK, BLOCK, 0, stream>>>(a, b, round);
		OK(cudaMemcpyAsync(out, a, N * 4, cudaMemcpyDeviceToHost, stream));
		if (round % 16 == 0)
			OK(cudaLaunchHostFunc(stream, called, w));
		if (round % 64)
			continue;
		OK(cudaStreamSynchronize(stream));
		for (int i = 0; i < N; i += 64)
			w->hash = w->hash * 31 + out[i];
		in[round % N] = w->hash;
	}
	OK(cudaStreamSynchronize(stream));
	if (mine != w->number || w->address != &mine)
		printf("thread %u has lost what is its own\n", w->number);
	OK(cudaStreamDestroy(stream));
	return NULL;
}

int main(int argc, char **argv)
{
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {0};
	static struct worker workers[THREADS];

	rounds = argc > 1 ? atoi(argv[1]) : 1000;
	action.sa_handler = handle;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	OK(cudaFree(NULL));
	if (argc > 2)
		setitimer(ITIMER_REAL, &often, NULL);
	pthread_barrier_init(&turn, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		workers[i].number = i;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < 8; i++) {
		pthread_barrier_wait(&turn);
		printf("part %d\n", i);
		fflush(stdout);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	for (int i = 0; i < THREADS; i++)
		printf("thread %d: %08x, %u calls\n", i, workers[i].hash, workers[i].calls);
	if (argc > 2)
		printf("signals: %s\n", signals > 500 ? "many" : "too few");
	return 0;
}
