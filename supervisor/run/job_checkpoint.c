#include "supervisor/run/job_checkpoint.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "supervisor/job/coordinate.h"
#include "supervisor/job/member_files.h"
#include "supervisor/run/control_client.h"
#include "supervisor/run/told_once.h"

static _Atomic bool under_way;

struct work {
	struct supervisor *s;
	enum job_reason reason;
	unsigned deadline_s;
};

static struct supervisor *whose;

static void notice(const char *line)
{
	told_once(whose, line);
}

static void take_job_checkpoint(struct work *w)
{
	struct supervisor *s = w->s;
	cleanup_free char *text =
		xasprintf("checkpoint stop=0 timeout_ms=%" PRIu64 " foresee=%d "
			  "drain_ms=%" PRIu64,
			w->deadline_s * (uint64_t)1000, w->deadline_s > 0,
			s->options.drain_s * (uint64_t)1000);
	const struct coordinate_request request = {.dir = s->job->dir,
		.text = text,
		.deadline_ns = w->deadline_s ? clock_ns(CLOCK_MONOTONIC) +
						       w->deadline_s * 1000000000ull
					     : 0,
		.signalled = w->reason == JOB_SIGNAL ? s->job->rank : -1,
		.connect = control_connect,
		.notice = notice};
	cleanup_free char *path = NULL;
	struct err e = ERR_INIT;
	int r = coordinate(&request, &path, &e);

	if (r < 0)
		fprintf(stderr, "%s: cannot checkpoint the job: %s\n", s->tool, e.msg);
	else if (path && s->options.verbose)
		fprintf(stderr, "%s: checkpoint %s\n", s->tool, path);
}

static void *run(void *arg)
{
	struct work *w = arg;

	take_job_checkpoint(w);
	free(w);
	under_way = false;
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

void job_checkpoint_begin(struct supervisor *s, enum job_reason reason, unsigned deadline_s)
{
	struct work *w;
	pthread_t thread;

	if (under_way || (reason == JOB_INTERVAL && another_keeps_time(s->job)))
		return;
	whose = s;
	under_way = true;
	w = xcalloc(1, sizeof(*w));
	*w = (struct work){s, reason, deadline_s};
	if (thread_start(&thread, run, w)) {
		fprintf(stderr, "%s: cannot checkpoint the job: there can be no more threads\n",
			s->tool);
		free(w);
		under_way = false;
		return;
	}
	(void)pthread_detach(thread);
}
