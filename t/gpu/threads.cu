/* Threads that come and go, each with a stream and host functions, while a timer's signal
 * arrives a thousand times a second. Handlers and callbacks look at their thread's own data. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "t/gpu/gpu.h"

#define THREADS 8
#define ROUNDS  5
#define N       4096

static __thread long mine; /* 0, or this thread's address of it */
static int wrong, signals, calls;

__global__ void fill(int *a, int value)
{
	a[threadIdx.x + blockIdx.x * blockDim.x] = value;
}

__global__ void nothing(void)
{
}

static void check_own(void)
{
	if (mine && mine != (long)&mine)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

static void handle(int signal)
{
	int device;

	check_own();
	/* A call down from a handler, now and then. */
	if (__atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED) % 64 == 0)
		cudaGetDevice(&device);
}

static void called(void *argument)
{
	check_own();
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

static void *work(void *argument)
{
	int value = (int)(long)argument, *device, host[N];
	cudaStream_t stream;

	mine = (long)&mine;
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaMallocAsync(&device, sizeof(host), stream));
	for (int i = 0; i < 500; i++) {
		fill<<<N / 256, 256, 0, stream>>>(device, value + i);
		if (i % 50)
			continue;
		OK(cudaLaunchHostFunc(stream, called, NULL));
		OK(cudaMemcpyAsync(
			host, device, sizeof(host), cudaMemcpyDeviceToHost, stream));
		OK(cudaStreamSynchronize(stream));
		for (int j = 0; j < N; j++)
			if (host[j] != value + i)
				__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
		check_own();
	}
	OK(cudaFreeAsync(device, stream));
	OK(cudaStreamDestroy(stream));
	return NULL;
}

int main(void)
{
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {0};
	pthread_t threads[THREADS];

	action.sa_handler = handle;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	OK(cudaFree(NULL));
	mine = (long)&mine;
	setitimer(ITIMER_REAL, &often, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		for (long i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, work, (void *)(round * 100 + i));
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	OK(cudaDeviceSynchronize());
	/* Signals that come to a thread in a loop of launches. */
	for (int i = 0; i < 100000 || signals < 200; i++)
		nothing<<<1, 1>>>();
	OK(cudaDeviceSynchronize());
	setitimer(ITIMER_REAL, &never, NULL);
	printf("wrong %d, calls %d, signals %s\n", wrong, calls,
		signals >= 200 ? "enough" : "too few");
	return 0;
}
