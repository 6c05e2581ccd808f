/*
 * create_processes.c - from the first new process to a whole tree of such, each stopped before the first instruction
 * of its program, or where it stands for good.
 */
#include <errno.h>
#include <sched.h>

#include "supervisor/restore/restart_attempt.h"
#include "supervisor/restore/restore_stage.h"
#include "supervisor/start/spawn.h"
#include "supervisor/target/ptrace_policy.h"

static size_t node_count(const struct restore *r)
{
	return creation_order_count(&r->creation.order);
}

static enum creation_kind kind_of(const struct restore *r, size_t node)
{
	return creation_order_at(&r->creation.order, node)->kind;
}

/* Nothing that the process itself does is in the way: it has just been made. */
static int explain_refusal(struct err *e)
{
	const char *forbidden = e->code == EPERM ? ptrace_policy_forbids() : NULL;

	if (forbidden)
		return err_set(e, EPERM, "cannot attach to the new process: %s", forbidden);
	if (e->code == EPERM)
		return err_append(e,
			" (probably a security policy of this machine, AppArmor or SELinux, "
			"forbids ptrace(2), which its administrator can change, or "
			"trecr-restart has a program file that its user may not read)");
	return -1;
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
	if (tracee_seize(&n->t, true, r->e))
		return explain_refusal(r->e);
	if (spawn_release(r->s, r->e))
		return -1;
	restore_advance(&r->processes[0], RESTORE_MADE);
	n->goal = NEWBORN_TRAPS;
	return restore_await_newborns(r);
}

/* ---- the ends of helpers and zombies, before the program could see otherwise ---- */

/* A helper's own helpers end before it: the process that adopts its other children must not get them. */
static int end_helpers_of(struct restore *r, size_t node)
{
	struct newborn *maker = &r->newborns[node];

	for (size_t i = 1; i < node_count(r); i++) {
		struct newborn *helper = &r->newborns[i];

		if (creation_order_at(&r->creation.order, i)->creator != node)
			continue;
		if (end_helpers_of(r, i))
			return -1;
		if (kind_of(r, i) == CREATE_HELPER &&
			(newborn_exit(r, helper) || restore_await_newborns(r) ||
				restore_reap(r, maker, helper)))
			return -1;
	}
	return 0;
}

/* Helpers have ended, so each zombie has the parent that it had at the checkpoint. */
static int end_zombies(struct restore *r)
{
	for (size_t i = 0; i < node_count(r); i++)
		if (kind_of(r, i) == CREATE_ZOMBIE &&
			newborn_run(r, &r->newborns[i], creation_run_zombie, i, NEWBORN_ENDS))
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

static bool uses_table_of_another(const struct restore *r, size_t i)
{
	return checkpoint_owner(r->c, i, IMAGE_SHARED_FILES) != i;
}

static bool has_proxy(const struct restore *r, size_t i)
{
	return checkpoint_owner(r->c, i, IMAGE_SHARED_MEMORY) != i;
}

/* Of process @i, or of itself. */
static struct newborn *proxy_of(struct restore *r, size_t i)
{
	return &r->newborns[has_proxy(r, i) ? node_count(r) + i : i];
}

/* While all stand still, so that they get whole copies of the memory. */
static int make_proxies(struct restore *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (has_proxy(r, i) && restore_make_helper(r, &r->newborns[i], proxy_of(r, i),
					       CLONE_FILES | CLONE_FS, 0))
			return -1;
	return 0;
}

static int end_proxies(struct restore *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (has_proxy(r, i) && newborn_exit(r, proxy_of(r, i)))
			return -1;
	if (restore_await_newborns(r))
		return -1;
	for (size_t i = 0; i < r->count; i++)
		if (has_proxy(r, i) && restore_reap(r, &r->newborns[i], proxy_of(r, i)))
			return -1;
	return 0;
}

/* Let processes put their descriptors in order and execute their programs: either all that use
 * another's table of descriptors, or all others. */
static int execute_programs(struct restore *r, bool followers)
{
	for (size_t i = 0; i < r->count; i++)
		if (uses_table_of_another(r, i) == followers &&
			newborn_run(r, proxy_of(r, i), creation_run_process, i,
				r->creation.children[i].stays ? NEWBORN_TRAPS
							      : NEWBORN_EXECUTES))
			return -1;
	return restore_await_newborns(r);
}

int restore_create_processes(struct restore *r)
{
	if (make_first(r) || restore_make_tree(r) || restore_make_groups(r) ||
		restore_set_terminals(r) || end_helpers_of(r, 0) || end_zombies(r))
		return -1;
	if (make_proxies(r) || execute_programs(r, true) || execute_programs(r, false) ||
		end_proxies(r))
		return -1;
	for (size_t i = 0; i < r->count; i++) {
		restore_advance(&r->processes[i], RESTORE_PLACED);
		restore_advance(&r->processes[i], RESTORE_EXECUTED);
	}
	return 0;
}
