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

enum restore_stage restore_stage_of(const struct new_process *new)
{
	return new->stage == RESTORE_MADE &&new->fds->placed ? RESTORE_PLACED : new->stage;
}

void restore_advance(struct new_process *new, enum restore_stage stage)
{
	BUG_ON(stage != new->stage + 1);
	new->stage = stage;
	if (new->o->verbose &&new->o->notice)
		notice_printf(new->o->notice, "process %d (%s): %s", new->process.vpid,
			new->process.comm, restore_stage_name(stage));
}
