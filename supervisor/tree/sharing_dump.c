/*
 * What processes share otherwise than by fork(2): clone(2) with CLONE_VM and its like. It is
 * saved once, with the first of them in the tree's order.
 */
#include "supervisor/tree/sharing_dump.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/limits.h"
#include "supervisor/target/kcmp_search.h"

static const int kcmp_types[IMAGE_SHARED_KINDS] = {
	[IMAGE_SHARED_MEMORY] = KCMP_VM,
	[IMAGE_SHARED_FILES] = KCMP_FILES,
	[IMAGE_SHARED_DIRECTORY] = KCMP_FS,
	[IMAGE_SHARED_SIGNALS] = KCMP_SIGHAND,
};

/* Numbers of processes in the order that kcmp(2) has for one kind of thing. */
struct sharers {
	const struct tree *tree;
	struct buf order;
	int type;
	size_t sought;
};

static int compare_sharer(const void *context, size_t i, struct err *e)
{
	const struct sharers *s = context;
	const struct process *other = s->tree->processes[*buf_at(&s->order, size_t, i)];
	int r = syscall(
		SYS_kcmp, other->task, s->tree->processes[s->sought]->task, s->type, 0L, 0L);

	return r < 0 ? limit_err(e, errno, SYS_kcmp, "cannot compare processes (kcmp)") : r;
}

static void insert_sharer(struct sharers *s, size_t at, size_t i)
{
	size_t *slot;

	buf_grow(&s->order, sizeof(*slot));
	slot = buf_at(&s->order, size_t, at);
	memmove(slot + 1, slot, s->order.len - (at + 1) * sizeof(*slot));
	*slot = i;
}

static int find_sharers(struct tree *tree, enum image_shared what, struct err *e)
{
	struct sharers s = {.tree = tree, .type = kcmp_types[what]};
	int failed = 0;

	for (size_t i = 0; i < tree->living && !failed; i++) {
		size_t at = 0;
		int r;

		s.sought = i;
		r = kcmp_search(buf_count(&s.order, size_t), compare_sharer, &s, &at, e);
		if (r > 0)
			tree->processes[i]->owner[what] = *buf_at(&s.order, size_t, at);
		else if (!r)
			insert_sharer(&s, at, i);
		failed = r < 0;
	}
	buf_free(&s.order);
	return failed ? -1 : 0;
}

/* The driver's half of a process is made anew for that process alone. */
static int refuse_lower(const struct tree *tree, size_t i, struct err *e)
{
	const struct process *p = tree->processes[i];
	size_t first = p->owner[IMAGE_SHARED_MEMORY];

	if (first == i || !(p->lower || tree->processes[first]->lower))
		return 0;
	return err_set(e, 0,
		"processes %d and %d (%s) share their memory and use a GPU, which is not "
		"supported",
		tree->processes[first]->pid, p->pid, p->comm);
}

static bool is_special(const struct tree *tree, size_t i)
{
	const struct process *p = tree->processes[i];

	for (int k = 0; k < IMAGE_SHARED_KINDS; k++)
		if (p->owner[k] != i)
			return true;
	return p->exit_signal != SIGCHLD;
}

int dump_sharing(struct tree *tree, struct err *e)
{
	for (size_t i = 0; i < tree->count; i++) {
		struct process *p = tree->processes[i];

		/* The first one's parent is the supervisor here, and will be. */
		if (!i)
			p->exit_signal = SIGCHLD;
		for (int k = 0; k < IMAGE_SHARED_KINDS; k++)
			p->owner[k] = i;
	}
	for (int k = 0; k < IMAGE_SHARED_KINDS; k++)
		if (find_sharers(tree, k, e))
			return -1;
	for (size_t i = 0; i < tree->living; i++)
		if (refuse_lower(tree, i, e))
			return -1;
	return 0;
}

struct image_sharing *dump_sharing_list(const struct tree *tree)
{
	struct image_sharing *list = NULL;
	bool special = false;

	for (size_t i = 0; i < tree->count; i++)
		special |= is_special(tree, i);
	if (!special)
		return NULL;
	list = xcalloc(tree->count, sizeof(*list));
	for (size_t i = 0; i < tree->count; i++) {
		list[i].exit_signal = tree->processes[i]->exit_signal;
		for (int k = 0; k < IMAGE_SHARED_KINDS; k++)
			list[i].with[k] = tree->processes[i]->owner[k];
	}
	return list;
}
