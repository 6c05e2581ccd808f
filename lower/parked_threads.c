/*
 * Threads that sleep while a thread of the upper half uses their thread-local storage: all that
 * the libc and the libraries of the lower half know of that thread is what they know of the
 * parked one.
 */
#include <pthread.h>
#include <stdlib.h>

#include "lower/runtime.h"
#include "shared/raw.h"

/* Destructors of the libraries' thread-local data run on it, nothing else. */
#define PARKED_STACK (256 << 10)

struct start {
	struct lower_parked *parked;
	uint32_t ready;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lower_parked *all;

struct lower_parked *parked_first(void)
{
	return all;
}

static void link_parked(struct lower_parked *p)
{
	pthread_mutex_lock(&lock);
	p->next = all;
	all = p;
	pthread_mutex_unlock(&lock);
}

static void unlink_parked(const struct lower_parked *p)
{
	struct lower_parked **at = &all;

	pthread_mutex_lock(&lock);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	pthread_mutex_unlock(&lock);
}

static void *run_parked(void *argument)
{
	struct start *start = argument;
	struct lower_parked *parked = calloc(1, sizeof(*parked));

	if (parked) {
		parked->fs = raw_read_fs();
		parked->upper_slot = (void **)&upper_thread;
		link_parked(parked);
	}
	start->parked = parked;
	raw_set_and_wake(&start->ready, 1);
	if (!parked)
		return NULL;
	raw_wait(&parked->leave, 0);
	upper_thread = NULL;
	unlink_parked(parked);
	free(parked);
	return NULL;
}

struct lower_parked *parked_new(void)
{
	struct start start = {0};
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, PARKED_STACK);
	r = pthread_create(&thread, &attr, run_parked, &start);
	pthread_attr_destroy(&attr);
	if (r)
		return NULL;
	raw_wait(&start.ready, 0);
	return start.parked;
}
