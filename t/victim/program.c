/* A small program that is linked in several ways: dynamic, static, static-PIE, without PIE,
 * against musl. Threads, thread-local data, the heap, time and a sleep. */
#include "victim.h"

#define N 4

static __thread uint64_t local[32] = {1, 2, 3};
static char data[4096] = "initialised";
static char bss[64 * 1024];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int up;
static bool go;
static char *heap[100];

void victim_hurt(void)
{
	heap[50][7] ^= 1;
	bss[100] ^= 1;
}

static void *thread(void *arg)
{
	size_t n = (size_t)arg;

	CHECK(local[1] == 2, "initial value of thread-local data");
	victim_fill(local, sizeof(local), n);
	pthread_mutex_lock(&lock);
	up++;
	while (!go)
		pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
	SAME(local, sizeof(local), n, "thread-local data");
	return (void *)n;
}

int main(int argc, char **argv)
{
	uint64_t start = victim_now();
	struct timespec nap = {0, 5000000};
	pthread_t t[N];
	void *result;

	for (int i = 0; i < 100; i++) {
		heap[i] = malloc(1000 + 800 * i);
		MUST(heap[i]);
		victim_fill(heap[i], 1000, i);
	}
	victim_fill(bss, sizeof(bss), 5);
	for (size_t i = 0; i < N; i++)
		t[i] = victim_thread(thread, (void *)i);
	while (up < N)
		nanosleep(&nap, NULL);
	victim_ready();
	victim_wait();
	pthread_mutex_lock(&lock);
	go = true;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < N; i++) {
		pthread_join(t[i], &result);
		CHECK(result == (void *)i, "thread %zu", i);
	}
	for (int i = 0; i < 100; i++) {
		SAME(heap[i], 1000, i, "heap");
		free(heap[i]);
	}
	SAME(bss, sizeof(bss), 5, "bss");
	CHECK(!strcmp(data, "initialised"), "data is '%s'", data);
	CHECK(victim_now() > start, "time");
	for (int i = 0; i < 100; i++)
		MUST(heap[i] = malloc(200000));
	MUST(!nanosleep(&nap, NULL));
	pthread_join(victim_thread(thread, (void *)9), &result);
	CHECK(result == (void *)9, "a new thread");
	return victim_done();
}
