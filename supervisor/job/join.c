#include "supervisor/job/join.h"

#include "supervisor/job/members.h"
#include "supervisor/job/rank.h"

/* What only the checkpoints of a program by itself can have so far. */
static int check_options(const struct supervisor_options *o, struct err *e)
{
	const char *option = o->incremental   ? "--incremental"
			     : o->interval_s  ? "--interval"
			     : o->ckpt_signal ? "--ckpt-signal"
					      : NULL;

	if (!option)
		return 0;
	return err_set(e, 0,
		"%s is not for the members of a job yet: trecr-ckpt DIRECTORY saves all of it "
		"(--alone: each process by itself, in a directory of its own)",
		option);
}

int job_join_supervisor(struct supervisor *s, const char *dir, const char *from, struct err *e)
{
	int rank, size;

	if (s->options.alone || !rank_of_launcher(&rank, &size))
		return 0;
	if (check_options(&s->options, e))
		return -1;
	s->job = job_join(dir, rank, size, s->options.keep, from, e);
	return s->job ? 0 : -1;
}
