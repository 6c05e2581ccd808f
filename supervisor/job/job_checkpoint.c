/*
 * job_checkpoint.c - the thread, and what comes while it is at work.
 */
#include "supervisor/job/job_checkpoint.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "supervisor/control/checkpoint_request.h"
#include "supervisor/job/coordinate.h"
#include "supervisor/job/member_files.h"
#include "supervisor/control/control_client.h"
#include "supervisor/start/supervisor_messages.h"

struct work {
	struct supervisor *s;
	enum job_reason reason;
	bool again; /* as for turns_ask() */
	unsigned deadline_s;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool under_way;
static struct work next; /* for a signal that has come meanwhile; .s NULL: none has */

static struct supervisor *whose;

static void print_notice(const char *line)
{
	supervisor_say_once(whose, line);
}

static void take_job_checkpoint(struct work *w)
{
	struct supervisor *s = w->s;
	const struct checkpoint_request checkpoint = {
		.deadline_ns = w->deadline_s ? clock_ns(CLOCK_MONOTONIC) +
						       w->deadline_s * 1000000000ull
					     : 0,
		.foresee = w->deadline_s > 0,
		.drain_ns = s->options.drain_s * 1000000000ull};
	cleanup_free char *text = checkpoint_request_text(&checkpoint);
	const struct coordinate_request request = {.dir = s->job->dir,
		.text = text,
		.deadline_ns = checkpoint.deadline_ns,
		.deadline_option = checkpoint_deadline_option(&checkpoint),
		.rest_ns = checkpoint.drain_ns,
		.signalled = w->reason == JOB_SIGNAL ? s->job->rank : -1,
		.again = w->again,
		.connect = control_connect,
		.notice = print_notice};
	cleanup_free char *path = NULL;
	struct err e = ERR_INIT;
	int r = coordinate(&request, &path, &e);

	if (r < 0)
		supervisor_say(s, "cannot checkpoint the job: %s", e.msg);
	else if (path && s->options.verbose)
		supervisor_say(s, "checkpoint %s", path);
}

/* Whether there is more to do. */
static bool take_next(struct work *w)
{
	pthread_mutex_lock(&lock);
	*w = next;
	under_way = w->s != NULL;
	next.s = NULL;
	pthread_mutex_unlock(&lock);
	return w->s != NULL;
}

static void *run_job_checkpoints(void *arg)
{
	struct work *w = arg;

	do
		take_job_checkpoint(w);
	while (take_next(w));
	free(w);
	return NULL;
}

/* The lowest of the ranks that have an interval keeps the time for the job. */
static bool another_keeps_time(const struct job *job)
{
	struct job_member m;

	for (int rank = 0; rank < job->rank; rank++)
		if (!job_member_of(job->dir, rank, &m) && m.interval_s)
			return true;
	return false;
}

/* Whether it is for another thread that is at work to do. */
static bool leave_it(const struct work *w)
{
	bool left;

	pthread_mutex_lock(&lock);
	left = under_way;
	if (left && w->reason == JOB_SIGNAL)
		next = *w;
	under_way = true;
	pthread_mutex_unlock(&lock);
	return left;
}

void job_checkpoint_begin(struct supervisor *s, enum job_reason reason, unsigned deadline_s)
{
	bool signalled = reason == JOB_SIGNAL;
	const struct work w = {s, reason, signalled && s->job->signal_served, deadline_s};
	struct work *own;
	pthread_t thread;

	if (!signalled && another_keeps_time(s->job))
		return;
	whose = s;
	if (signalled)
		s->job->signal_served = false;
	if (leave_it(&w))
		return;
	own = xcalloc(1, sizeof(*own));
	*own = w;
	if (thread_start(&thread, run_job_checkpoints, own)) {
		supervisor_say(s, "cannot checkpoint the job: there can be no more threads");
		(void)take_next(own);
		free(own);
		return;
	}
	(void)pthread_detach(thread);
}
