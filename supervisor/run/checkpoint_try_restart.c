/*
 * checkpoint_try_restart.c - the trial of a restart, the check of what is on the disk, and the
 * last moment at which the program could still run on.
 */
#include "supervisor/run/checkpoint_try_restart.h"

#include <stddef.h>

#include "lib/notices.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/job/checkpoint_part.h"
#include "supervisor/restore/restore.h"
#include "supervisor/restore/trial.h"
#include "supervisor/split/lower_half.h"
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

int checkpoint_try(struct checkpoint_work *w)
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
	err_prefix(w->e, "the checkpoint %s is complete, but %s%s", w->made->path, outcome,
		w->request->stop ? ", so the program resumes" : "");
	w->made->unrestartable = true;
	/* To take another one would change nothing. */
	w->e->remedy = ERR_FINAL;
	return CHECKPOINT_KEPT;
}

/* Whether variables of the GPU's modules in @p lie where only a trial can tell if they come to lie
 * there again. */
static bool is_uncertain(const struct process *p)
{
	uint32_t uncertain = 0;

	return p->lower && p->lower->drained &&
	       !lower_peek(p->pid, LOWER_SHARED + offsetof(struct lower_table, uncertain),
		       &uncertain, sizeof(uncertain)) &&
	       uncertain;
}

void checkpoint_tell_untried(const struct checkpoint_work *w)
{
	static bool told; /* the next checkpoint of the program is no more certain */

	for (size_t i = 0; !told && i < w->tree.count; i++) {
		if (!is_uncertain(w->tree.processes[i]))
			continue;
		notice_add("a restart has not been tried, and of process %d it is not certain: "
			   "the GPU's driver may place variables elsewhere (trecr-ckpt --try "
			   "and --stop try it; this is said once)",
			w->tree.processes[i]->pid);
		told = true;
	}
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

	if ((failed = checkpoint_try(w)) || (failed = point_of_no_return(w)))
		return failed;
	return hold_connections(w);
}
