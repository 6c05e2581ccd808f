/* Threads with a working directory, and a umask, of their own (unshare(CLONE_FS)). */
#include <sched.h>

#include "victim.h"

#define THREADS 2

static char expected[THREADS + 1][PATH_MAX];
static pthread_barrier_t ready, go;

static unsigned own_mask(void)
{
	unsigned mask = umask(0);

	umask(mask);
	return mask;
}

static void *thread(void *arg)
{
	long n = (long)arg;
	char name[32], now[PATH_MAX];

	snprintf(name, sizeof(name), "of-thread-%ld", n);
	MUST(!unshare(CLONE_FS) && !mkdir(name, 0700) && !chdir(name));
	umask(n);
	MUST(getcwd(expected[n], PATH_MAX));
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&go);
	CHECK(getcwd(now, sizeof(now)) && !strcmp(now, expected[n]), "thread %ld is in %s", n,
		now);
	CHECK(own_mask() == n, "thread %ld: umask %o", n, own_mask());
	/* Still nobody else's. */
	CHECK(!chdir("/"), "chdir: %s", strerror(errno));
	pthread_barrier_wait(&ready);
	return NULL;
}

void victim_hurt(void)
{
	MUST(!chdir("/"));
}

int main(void)
{
	pthread_t threads[THREADS + 1];
	char now[PATH_MAX];

	pthread_barrier_init(&ready, NULL, THREADS + 1);
	pthread_barrier_init(&go, NULL, THREADS + 1);
	umask(022);
	MUST(getcwd(expected[0], PATH_MAX));
	for (long i = 1; i <= THREADS; i++)
		threads[i] = victim_thread(thread, (void *)i);
	pthread_barrier_wait(&ready);
	victim_ready();
	victim_wait();
	pthread_barrier_wait(&go);
	pthread_barrier_wait(&ready);
	CHECK(getcwd(now, sizeof(now)) && !strcmp(now, expected[0]), "the process is in %s",
		now);
	CHECK(own_mask() == 022, "the process's umask is %o", own_mask());
	for (int i = 1; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	return victim_done();
}
