/* Mutexes, condition variables, semaphores, read-write locks and barriers in use by threads
 * that never stop for the checkpoint: nothing is lost and nothing counted twice. */
#include <semaphore.h>

#include "victim.h"

#define WORKERS 6

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t items;
static uint64_t made, taken, counter, under_rw;
static bool stop;

void victim_hurt(void)
{
	counter--;
}

static void *maker(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		if (stop) {
			pthread_cond_broadcast(&changed);
			pthread_mutex_unlock(&lock);
			return NULL;
		}
		made++;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&lock);
		sem_post(&items);
		if (made % 64 == 0)
			usleep(100);
	}
}

static void *taker(void *arg)
{
	uint64_t n = 0;

	for (;;) {
		pthread_mutex_lock(&lock);
		while (taken == made && !stop)
			pthread_cond_wait(&changed, &lock);
		if (taken == made) {
			pthread_mutex_unlock(&lock);
			return (void *)n;
		}
		taken++;
		pthread_mutex_unlock(&lock);
		n++;
		sem_wait(&items);
		pthread_rwlock_wrlock(&rw);
		under_rw++;
		pthread_rwlock_unlock(&rw);
	}
}

static void *pacer(void *arg)
{
	uint64_t n = 0;

	for (;;) {
		int last = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
		bool end;

		if (last)
			counter++;
		n++;
		usleep(200);
		pthread_mutex_lock(&lock);
		end = stop;
		pthread_mutex_unlock(&lock);
		/* All agree, as the second barrier is between the question and the answer. */
		if (last && end)
			counter |= 1ull << 63;
		pthread_barrier_wait(&barrier);
		if (counter >> 63)
			return (void *)n;
	}
}

int main(void)
{
	pthread_t m[2], t[WORKERS], p[3];
	uint64_t got = 0;
	void *result;
	int left;

	sem_init(&items, 0, 0);
	pthread_barrier_init(&barrier, NULL, 3);
	for (int i = 0; i < 3; i++)
		p[i] = victim_thread(pacer, NULL);
	for (int i = 0; i < WORKERS; i++)
		t[i] = victim_thread(taker, NULL);
	for (int i = 0; i < 2; i++)
		m[i] = victim_thread(maker, NULL);
	usleep(20000);
	victim_ready();
	victim_wait();
	usleep(50000);
	pthread_mutex_lock(&lock);
	stop = true;
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 2; i++)
		pthread_join(m[i], NULL);
	pthread_cond_broadcast(&changed);
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(t[i], &result);
		got += (uint64_t)result;
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(p[i], &result);
		CHECK((counter & ~(1ull << 63)) == (uint64_t)result,
			"thread passed the barrier %llu times of %llu",
			(long long)(uint64_t)result, (long long)(counter & ~(1ull << 63)));
	}
	sem_getvalue(&items, &left);
	CHECK(made == taken && taken == got && under_rw == got && left == 0,
		"made %llu, taken %llu, got %llu, under lock %llu, left %d", (long long)made,
		(long long)taken, (long long)got, (long long)under_rw, left);
	return victim_done();
}
