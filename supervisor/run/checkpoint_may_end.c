/*
 * checkpoint_may_end.c - the trial of a restart, the check of what is on the disk, and the
 * last moment at which the program could still run on.
 */
#include "supervisor/run/checkpoint_may_end.h"

#include "lib/notices.h"
#include "supervisor/descriptors/descriptors.h"
#include "supervisor/job/checkpoint_part.h"
#include "supervisor/restore/restore.h"
#include "supervisor/restore/trial.h"
#include "supervisor/tree/thaw.h"

static int try_restart(
	struct checkpoint_work *w, const struct checkpoint *c, const char **outcome)
{
	switch (trial_run(c, w->request->deadline_ns, w->e)) {
	case RESTORE_FAILS:
		return -1;
	case RESTORE_LATE:
		*outcome = "whether it can be restarted here is not known";
		return -1;
	case RESTORE_UNKNOWN:
		notice_add("whether it can be restarted has not been tried: %s", w->e->msg);
		return 0;
	case RESTORE_WORKS:
		break;
	}
	return 0;
}

/* The program is ended only when what can be said of a restart has been looked at. */
static int check_restart(struct checkpoint_work *w)
{
	struct checkpoint *c = checkpoint_open(w->made->path, w->e);
	const char *outcome = "it could not be restarted here";
	int failed = !c || restore_check(w->s, c, w->e) ||
		     (w->request->verify && checkpoint_read_back(c, w->e)) ||
		     (!w->request->no_try && try_restart(w, c, &outcome));

	checkpoint_close(c);
	if (!failed && w->request->part)
		failed = part_tried(w->request->part, w->e);
	if (!failed)
		return 0;
	err_prefix(w->e, "the checkpoint %s is complete, but %s, so the program resumes",
		w->made->path, outcome);
	w->made->doubtful = true;
	/* To take another one would change nothing. */
	w->e->remedy = ERR_FINAL;
	return CHECKPOINT_KEPT;
}

/* The program is about to be ended. */
static int point_of_no_return(struct checkpoint_work *w)
{
	if (!under_way_finally(w->under_way, w->e))
		return 0;
	err_append(w->e, "; the checkpoint %s is complete all the same", w->made->path);
	return CHECKPOINT_KEPT;
}

/* From here on the program ends when we do, or nobody would release its connections. */
static int hold_connections(struct checkpoint_work *w)
{
	if (!fd_dump_keeps(w->fds))
		return 0;
	return thaw_set_exitkill(&w->tree, w->e) || fd_dump_hold(w->fds, w->s->job_id, w->e)
		       ? err_prefix(w->e, "the checkpoint is complete, but the program resumes")
		       : 0;
}

int checkpoint_may_end(struct checkpoint_work *w)
{
	int failed;

	if ((failed = check_restart(w)) || (failed = point_of_no_return(w)))
		return failed;
	return hold_connections(w);
}
