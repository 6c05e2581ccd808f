/*
 * restore_stage.c - the names of the stages, and the step from one to the next.
 */
#include "supervisor/restore/restore_stage.h"

#include "lib/notices.h"
#include "supervisor/restore/restore.h"

const char *restore_stage_name(enum restore_stage stage)
{
	static const char *const names[RESTORE_STAGES] = {
		[RESTORE_PLANNED] = "planned",
		[RESTORE_MADE] = "made",
		[RESTORE_PLACED] = "placed",
		[RESTORE_EXECUTED] = "executed",
		[RESTORE_MAPPED] = "mapped",
		[RESTORE_THREADS] = "threads",
		[RESTORE_REGISTERS] = "registers",
		[RESTORE_LET_GO] = "let go",
	};

	return names[stage];
}

enum restore_stage restore_stage_of(const struct new_process *np)
{
	return np->stage == RESTORE_MADE && np->fds->placed ? RESTORE_PLACED : np->stage;
}

void restore_advance(struct new_process *np, enum restore_stage stage)
{
	BUG_ON(stage != np->stage + 1);
	np->stage = stage;
	if (np->o->verbose && np->o->notice)
		notice_printf(np->o->notice, "process %d (%s): %s", np->process.vpid,
			np->process.comm, restore_stage_name(stage));
}
