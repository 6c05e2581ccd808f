/* Threads that each sleep a little, again and again: a checkpoint and a restart come when
 * sleeps are about to end, and none of them ends early. */
#include <pthread.h>

#include "victim.h"

#define THREADS 50

static atomic_bool stop;
static atomic_int early;

void victim_hurt(void)
{
	early++;
}

static void *nap(void *argument)
{
	const struct timespec little = {0, 20000 + (long)argument * 3000};

	while (!stop)
		if (nanosleep(&little, NULL))
			early++;
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		MUST(!pthread_create(&threads[i], NULL, nap, (void *)i));
	victim_ready();
	victim_wait();
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(!early, "%d sleeps ended early", early);
	return victim_done();
}
