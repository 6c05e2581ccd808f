/*
 * progress.c - a thread that shows seconds until it is told to end.
 */
#include "lib/progress.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "lib/err.h"
#include "lib/util.h"

/* A thread of its own, so that the work need not look at the clock. Without it, should it not
 * start, the work is done all the same. */
static struct {
	const char *tool, *what;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool running, done;
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* By write(2): the work may be in the middle of standard error's buffer, or fork. */
static void show_progress(unsigned seconds)
{
	char line[96];
	int n = snprintf(
		line, sizeof(line), "\r%s: %s, %u s ", progress.tool, progress.what, seconds);

	(void)!write(2, line, n < (int)sizeof(line) ? n : (int)sizeof(line) - 1);
}

static void *progress_thread(void *arg)
{
	struct timespec next;
	unsigned seconds = 0;

	clock_gettime(CLOCK_MONOTONIC, &next);
	pthread_mutex_lock(&progress.lock);
	while (!progress.done) {
		next.tv_sec++;
		while (!progress.done && pthread_cond_timedwait(&progress.changed,
						 &progress.lock, &next) != ETIMEDOUT)
			;
		if (!progress.done)
			show_progress(++seconds);
	}
	pthread_mutex_unlock(&progress.lock);
	if (seconds)
		(void)!write(2, "\r\033[K", 4);
	return NULL;
}

void progress_begin(const char *tool, const char *what)
{
	pthread_condattr_t attributes;
	sigset_t all, old;

	if (!isatty(2))
		return;
	progress.tool = tool;
	progress.what = what;
	progress.done = false;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&progress.changed, &attributes);
	pthread_condattr_destroy(&attributes);
	/* Signals are for the thread that works. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	progress.running = !thread_start(&progress.thread, progress_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void progress_end(void)
{
	int r;

	if (!progress.running)
		return;
	pthread_mutex_lock(&progress.lock);
	progress.done = true;
	pthread_cond_signal(&progress.changed);
	pthread_mutex_unlock(&progress.lock);
	r = pthread_join(progress.thread, NULL);
	BUG_ON(r);
	pthread_cond_destroy(&progress.changed);
	progress.running = false;
}
