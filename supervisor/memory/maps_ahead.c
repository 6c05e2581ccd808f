/*
 * maps_ahead.c - the reader goes through the list from where the taker is. What it has not begun the taker reads itself, and
 * what it could not read, for the error.
 */
#include "supervisor/memory/maps_ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/threads.h"
#include "lib/util.h"

struct maps_ahead {
	pthread_t thread;
	pid_t *tasks;
	size_t count;
	pthread_mutex_t lock;   /* of what follows */
	pthread_cond_t is_read; /* the one that was under way */
	size_t next;            /* the first that nobody has begun */
	size_t reading;         /* the one under way; count: none */
	bool *done;             /* it is in the list below */
	struct vma_list *lists;
};

/* The next one to be read; false: there is none. */
static bool begin_next(struct maps_ahead *a)
{
	pthread_mutex_lock(&a->lock);
	while (a->next < a->count && !a->tasks[a->next])
		a->next++;
	a->reading = a->next < a->count ? a->next++ : a->count;
	pthread_mutex_unlock(&a->lock);
	return a->reading < a->count;
}

static void *read_maps(void *arg)
{
	struct maps_ahead *a = arg;

	while (begin_next(a)) {
		struct vma_list *list = &a->lists[a->reading];
		bool done = !procfs_vmas(a->tasks[a->reading], list, NULL);

		pthread_mutex_lock(&a->lock);
		a->done[a->reading] = done;
		a->reading = a->count;
		pthread_cond_signal(&a->is_read);
		pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

/* With all signals blocked: those are for the thread that has called us. */
static int start_reader(struct maps_ahead *a)
{
	sigset_t all, old;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	failed = thread_start(&a->thread, read_maps, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return failed;
}

static void free_ahead(struct maps_ahead *a)
{
	for (size_t i = 0; i < a->count; i++)
		vma_list_free(&a->lists[i]);
	pthread_cond_destroy(&a->is_read);
	pthread_mutex_destroy(&a->lock);
	free(a->tasks);
	free(a->done);
	free(a->lists);
	free(a);
}

struct maps_ahead *maps_ahead_begin(const pid_t *tasks, size_t count)
{
	struct maps_ahead *a;
	size_t size = count * sizeof(*tasks);

	if (count < 2)
		return NULL;
	a = xcalloc(1, sizeof(*a));
	a->tasks = xmalloc(size);
	memcpy(a->tasks, tasks, size);
	a->count = a->reading = count;
	a->next = 1; /* the first is the taker's */
	a->done = xcalloc(count, sizeof(*a->done));
	a->lists = xcalloc(count, sizeof(*a->lists));
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->is_read, NULL);
	if (!start_reader(a))
		return a;
	free_ahead(a);
	return NULL;
}

/* Whether *list has been filled. Nobody begins @i any more. */
static bool take_list(struct maps_ahead *a, size_t i, struct vma_list *list)
{
	bool done;

	pthread_mutex_lock(&a->lock);
	if (a->next <= i)
		a->next = i + 1;
	while (a->reading == i)
		pthread_cond_wait(&a->is_read, &a->lock);
	done = a->done[i];
	a->done[i] = false;
	pthread_mutex_unlock(&a->lock);
	if (done) {
		*list = a->lists[i];
		memset(&a->lists[i], 0, sizeof(a->lists[i]));
	}
	return done;
}

int maps_ahead_take(
	struct maps_ahead *ahead, size_t i, pid_t task, struct vma_list *list, struct err *e)
{
	return ahead && take_list(ahead, i, list) ? 0 : procfs_vmas(task, list, e);
}

void maps_ahead_end(struct maps_ahead *ahead)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->next = ahead->count;
	pthread_mutex_unlock(&ahead->lock);
	pthread_join(ahead->thread, NULL);
	free_ahead(ahead);
}
