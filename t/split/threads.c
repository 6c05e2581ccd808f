/* Threads that come, call and go: many, at once, with destructors that still call; nothing is
 * left of them. */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>

#include "t/split/setup.h"

static pthread_key_t key;
static int destroyed;

static void destroy(void *value)
{
	void *current = NULL;

	/* Runs after the first round of others' destructors too. */
	OK(cuCtxGetCurrent(&current));
	CHECK(current == context);
	__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}

static void *briefly(void *argument)
{
	void *current = &current;

	pthread_setspecific(key, &key);
	OK(cuCtxGetCurrent(&current));
	CHECK(!current);
	OK(cuCtxSetCurrent(context));
	return NULL;
}

static int count_tasks(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void rounds(int n)
{
	pthread_t threads[32];

	while (n--) {
		for (int i = 0; i < 32; i++)
			pthread_create(&threads[i], NULL, briefly, NULL);
		for (int i = 0; i < 32; i++)
			pthread_join(threads[i], NULL);
	}
}

int main(void)
{
	int before, after = 0;

	set_up();
	/* After the crossing's own key, so that its destructor comes first in each round. */
	pthread_key_create(&key, destroy);
	rounds(2);
	before = count_tasks();
	rounds(30);
	/* Threads of the lower half end a little later. */
	for (int i = 0; i < 100 && (after = count_tasks()) > before + 8; i++)
		poll(NULL, 0, 10);
	CHECK(after <= before + 8);
	CHECK(destroyed == 32 * 32);
	printf("done\n");
	return wrong != 0;
}
