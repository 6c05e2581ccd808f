/* 64 threads, each with its own thread-local data, id, stack and cleanup. */
#include "victim.h"

#define N 64

static __thread uint64_t local[16];
static __thread uint64_t zeroed;
static pthread_barrier_t before, after;
static pid_t tids[N];
static pthread_key_t key;
static atomic_int destroyed;

static void destroy(void *p)
{
	destroyed++;
}

void victim_hurt(void)
{
	tids[7]++;
}

static void *thread(void *arg)
{
	size_t n = (size_t)arg;
	uint64_t on_stack[64];

	victim_fill(local, sizeof(local), n);
	victim_fill(on_stack, sizeof(on_stack), 1000 + n);
	pthread_setspecific(key, (void *)(n + 1));
	errno = 1000 + n;
	tids[n] = victim_tid();
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	CHECK(errno == (int)(1000 + n), "errno of thread %zu is %d", n, errno);
	SAME(local, sizeof(local), n, "thread-local data");
	SAME(on_stack, sizeof(on_stack), 1000 + n, "stack of a thread");
	CHECK(zeroed == 0, "thread-local zero is %lld", (long long)zeroed);
	zeroed = n;
	CHECK(pthread_getspecific(key) == (void *)(n + 1), "thread-specific data");
	CHECK(tids[n] == victim_tid(), "thread id was %d, is %d", tids[n], victim_tid());
	return (void *)(n * 3);
}

static void *empty(void *arg)
{
	return arg;
}

int main(void)
{
	pthread_t t[N];
	void *result;

	pthread_key_create(&key, destroy);
	pthread_barrier_init(&before, NULL, N + 1);
	pthread_barrier_init(&after, NULL, N + 1);
	for (size_t i = 0; i < N; i++)
		t[i] = victim_thread(thread, (void *)i);
	pthread_barrier_wait(&before);
	victim_ready();
	victim_wait();
	pthread_barrier_wait(&after);
	for (size_t i = 0; i < N; i++) {
		CHECK(!pthread_join(t[i], &result), "thread %zu cannot be joined", i);
		CHECK(result == (void *)(i * 3), "thread %zu returned %p", i, result);
	}
	CHECK(destroyed == N, "%d destructors ran", destroyed);
	for (size_t i = 0; i < N; i++)
		pthread_join(victim_thread(empty, (void *)i), &result);
	return victim_done();
}
