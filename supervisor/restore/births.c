/*
 * From the first new process to a whole tree of such, each stopped before the first instruction
 * of its program, or where it stands for good.
 */
#include <sched.h>

#include "supervisor/restore/attempt.h"
#include "supervisor/restore/restore_stage.h"
#include "supervisor/start/spawn.h"

static size_t node_count(const struct restore *r)
{
	return birth_order_count(&r->birth.order);
}

static enum birth_kind kind_of(const struct restore *r, size_t node)
{
	return birth_order_at(&r->birth.order, node)->kind;
}

/* The first makes what all have in common. */
static int make_first(struct restore *r)
{
	struct tracee *root = &r->processes[0].process.threads[0].tracee;
	struct newborn *n = &r->newborns[0];

	r->processes[0].process.pid = r->processes[0].process.task = r->s->root;
	root->pid = root->tid = r->s->root;
	root->is_child = !r->s->init;
	n->t = (struct tracee){.pid = r->s->root, .tid = r->s->root};
	n->id = r->processes[0].process.vpid;
	if (tracee_seize(&n->t, true, r->e) || spawn_release(r->s, r->e))
		return -1;
	restore_advance(&r->processes[0], RESTORE_MADE);
	n->goal = NEWBORN_TRAPS;
	return restore_await_newborns(r);
}

/* ---- the ends of helpers and zombies, before the program could see otherwise ---- */

/* A helper's own helpers are not to be left to who adopts its other children. */
static int end_helpers_of(struct restore *r, size_t node)
{
	struct newborn *maker = &r->newborns[node];

	for (size_t i = 1; i < node_count(r); i++) {
		struct newborn *helper = &r->newborns[i];

		if (birth_order_at(&r->birth.order, i)->creator != node)
			continue;
		if (end_helpers_of(r, i))
			return -1;
		if (kind_of(r, i) == BIRTH_HELPER &&
			(birth_exit(r, helper) || restore_await_newborns(r) ||
				restore_reap(r, maker, helper)))
			return -1;
	}
	return 0;
}

/* Their parents are those that they had in the end. */
static int end_zombies(struct restore *r)
{
	for (size_t i = 0; i < node_count(r); i++)
		if (kind_of(r, i) == BIRTH_ZOMBIE &&
			birth_run(r, &r->newborns[i], birth_die, i, NEWBORN_ENDS))
			return -1;
	if (restore_await_newborns(r))
		return -1;
	if (r->dumping)
		restore_notice(r,
			"of processes that have ended and are not waited for yet, some "
			"no longer show that they left a core file (none can be written here)");
	return 0;
}

/* ---- descriptors and programs ---- */

static bool follows(const struct restore *r, size_t i)
{
	return checkpoint_owner(r->c, i, IMAGE_SHARED_FILES) != i;
}

static bool has_agent(const struct restore *r, size_t i)
{
	return checkpoint_owner(r->c, i, IMAGE_SHARED_MEMORY) != i;
}

/* Of process @i, or of itself. */
static struct newborn *agent_of(struct restore *r, size_t i)
{
	return &r->newborns[has_agent(r, i) ? node_count(r) + i : i];
}

/* While all stand still, so that they get whole copies of the memory. */
static int make_agents(struct restore *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (has_agent(r, i) && restore_make_helper(r, &r->newborns[i], agent_of(r, i),
					       CLONE_FILES | CLONE_FS, 0))
			return -1;
	return 0;
}

static int end_agents(struct restore *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (has_agent(r, i) && birth_exit(r, agent_of(r, i)))
			return -1;
	if (restore_await_newborns(r))
		return -1;
	for (size_t i = 0; i < r->count; i++)
		if (has_agent(r, i) && restore_reap(r, &r->newborns[i], agent_of(r, i)))
			return -1;
	return 0;
}

/* Those that follow another's table of descriptors, or all others. */
static int become(struct restore *r, bool followers)
{
	for (size_t i = 0; i < r->count; i++)
		if (follows(r, i) == followers &&
			birth_run(r, agent_of(r, i), birth_become, i,
				r->birth.children[i].stays ? NEWBORN_TRAPS : NEWBORN_EXECUTES))
			return -1;
	return restore_await_newborns(r);
}

int restore_births(struct restore *r)
{
	if (make_first(r) || restore_make_tree(r) || restore_settle_terminals(r) ||
		end_helpers_of(r, 0) || end_zombies(r))
		return -1;
	if (make_agents(r) || become(r, true) || become(r, false) || end_agents(r))
		return -1;
	for (size_t i = 0; i < r->count; i++) {
		restore_advance(&r->processes[i], RESTORE_PLACED);
		restore_advance(&r->processes[i], RESTORE_EXECUTED);
	}
	return 0;
}
