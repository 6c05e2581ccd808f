/* Threads that come and go as fast as they can while the checkpoint is taken. */
#include "victim.h"

static atomic_bool stop;
static atomic_ullong started, ended;

void victim_hurt(void)
{
	ended++;
}

static void *brief(void *arg)
{
	ended++;
	return NULL;
}

static void *maker(void *arg)
{
	while (!stop) {
		pthread_t t[4];

		for (int i = 0; i < 4; i++) {
			t[i] = victim_thread(brief, NULL);
			started++;
		}
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[3];

	for (int i = 0; i < 3; i++)
		t[i] = victim_thread(maker, NULL);
	victim_ready();
	victim_wait();
	usleep(20000);
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK(started == ended, "%llu threads started, %llu ended", (long long)started,
		(long long)ended);
	return victim_done();
}
