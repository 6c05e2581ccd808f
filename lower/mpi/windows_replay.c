/*
 * windows_replay.c - windows are made again over the memory that they had, and so is what those of the same ranks have
 * in common, whose words hold the state of all locks (stubs/mpi/windows.c): nothing is to be locked again. All are in a
 * passive epoch, so operations can be completed at any time.
 */
#include "lower/mpi/windows_replay.h"

#include <limits.h>
#include <stdlib.h>

#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/runtime.h"
#include "shared/mpi/message_records.h"
#include "shared/mpi/window_records.h"
#include "shared/raw.h"
#include "shared/shared_window.h"

enum {
	TYPE_INT = 0x4c000405,
	MAXIMUM = 0x58000001,
	MINIMUM = 0x58000002,
	FLAVOR_DYNAMIC = 3,
	MODE_NOCHECK = 1024,
};

/* ---- asked at a checkpoint ---- */

int window_save(struct mpi_object *o)
{
	int group, r, info;

	if (!o->window)
		return agent_fail("it has a window of memory that ranks share, or with "
				  "processes of another "
				  "MPI_COMM_WORLD");
	if (MPI_DO(Comm_group, o->window->control->comm, &group))
		return -1;
	r = group_save(&o->saved, group);
	if (MPI_DO(Group_free, &group) || r || MPI_DO(Win_get_info, o->real, &info))
		return -1;
	r = info_save(&o->saved, info);
	return MPI_DO(Info_free, &info) ? -1 : r;
}

/* ---- made again at a restart ---- */

static int attach_regions(int real, const struct mpi_region *region)
{
	for (; region; region = region->next)
		if (MPI_DO(Win_attach, real, region->base, region->size))
			return -1;
	return 0;
}

static int make_real(const struct mpi_window *w, int info, int *real)
{
	if (w->flavor == FLAVOR_DYNAMIC)
		return MPI_DO(Win_create_dynamic, info, w->control->comm, real) ||
				       attach_regions(*real, w->regions)
			       ? -1
			       : 0;
	if (w->large_unit <= INT_MAX)
		return MPI_DO(Win_create, w->base, w->bytes, (int)w->large_unit, info,
			w->control->comm, real);
	if (!mpi.Win_create_c)
		return agent_fail("the MPI library has no MPI_Win_create_c");
	return MPI_DO(
		Win_create_c, w->base, w->bytes, w->large_unit, info, w->control->comm, real);
}

static int make_control(struct mpi_window_control *c, int group, int tag)
{
	uint64_t bytes = mpi_control_word(c->size, c->places) * sizeof(*c->words);

	return MPI_DO(Comm_create_group, MPI_COMM_WORLD, group, tag, &c->comm) ||
			       MPI_DO(Comm_set_errhandler, c->comm, MPI_ERRORS_RETURN) ||
			       MPI_DO(Win_create, c->words, bytes, sizeof(*c->words),
				       MPI_INFO_NULL, c->comm, &c->real) ||
			       MPI_DO(Win_set_errhandler, c->real, MPI_ERRORS_RETURN) ||
			       MPI_DO(Win_lock_all, MODE_NOCHECK, c->real)
		       ? -1
		       : 0;
}

void windows_forget(struct mpi_state *s)
{
	for (struct mpi_window_control *c = s->controls; c; c = c->next)
		c->real = c->comm = 0;
}

/* ---- memory that ranks share ---- */

/* Each rank's supervisor has opened what it found by a name (supervisor/fd/shared_window.c): the same file, if the
 * ranks are where they share one. Else the head, in the image of the first rank only, is zeros to the others. */
static int check_shared(const struct mpi_window *w)
{
	struct shared_window *head = w->memory;
	int token = 0, here, all = 0;

	if (!w->rank) {
		token = (int)(mpi_now_ns() & INT_MAX) | 1;
		__atomic_store_n(&head->token, token, __ATOMIC_SEQ_CST);
	}
	here = token;
	if (MPI_DO(Allreduce, &here, &token, 1, TYPE_INT, MAXIMUM, w->control->comm))
		return -1;
	here = __atomic_load_n(&head->token, __ATOMIC_SEQ_CST) == (uint64_t)token;
	if (MPI_DO(Allreduce, &here, &all, 1, TYPE_INT, MINIMUM, w->control->comm))
		return -1;
	return all ? 0
		   : agent_fail("ranks that share the memory of a window "
				"(MPI_Win_allocate_shared) cannot share it here: start ranks "
				"that were on one node on one node, with one /dev/shm");
}

int window_make(struct mpi_object *o, struct saved_reader *r)
{
	struct mpi_window *w = o->window;
	int group, info, tag = o->count ? (int)(o->count->number & 0x7fff) : 0;

	if (group_make(r, &group) < 0 || info_make(r, &info) < 0)
		return -1;
	/* All its ranks make the same one of its windows first. */
	if ((!w->control->real && make_control(w->control, group, tag)) ||
		MPI_DO(Group_free, &group) || (w->shared && check_shared(w)))
		return -1;
	return make_real(w, info, &o->real) < 0 ||
			       MPI_DO(Win_set_errhandler, o->real, MPI_ERRORS_RETURN) ||
			       MPI_DO(Info_free, &info) ||
			       MPI_DO(Win_lock_all, MODE_NOCHECK, o->real)
		       ? -1
		       : 0;
}

/* ---- operations under way ---- */

#define BYTE 0x4c00010d

/*
 * The ranks of windows meet before they complete operations on them, so that nobody waits for a rank that runs, and again
 * behind that, so that each makes progress for the others. Who does not come is waited for until the checkpoint is
 * given up. So ranks may have missed each other in earlier checkpoints: each checkpoint has a number, the same in all
 * ranks, and what is left over of earlier ones is dropped.
 */
struct greeting {
	struct greeting *next;
	uint64_t number;
	int request; /* real; MPI_REQUEST_NULL: free */
};

static struct greeting *greetings;

/* How long others are waited for, also when no supervisor is left that would give up. */
static uint64_t until;

static struct greeting *free_greeting(void)
{
	int flag, status[MPI_STATUS_INTS];
	struct greeting *g;

	for (g = greetings; g; g = g->next)
		if (g->request == MPI_REQUEST_NULL ||
			(!mpi.Test(&g->request, &flag, status) && flag))
			return g;
	g = calloc(1, sizeof(*g));
	if (!g) {
		agent_fail("no memory to tell other ranks of a window");
		return NULL;
	}
	g->next = greetings;
	g->request = MPI_REQUEST_NULL;
	greetings = g;
	return g;
}

static int send_greeting(const struct mpi_window_control *c, int rank, int tag, uint64_t number)
{
	struct greeting *g = free_greeting();

	if (!g)
		return -1;
	g->number = number;
	return MPI_DO(
		Isend, &g->number, sizeof(g->number), BYTE, rank, tag, c->comm, &g->request);
}

static int has_come(const struct mpi_window_control *c, int rank, int tag, int *flag)
{
	int status[MPI_STATUS_INTS];

	if (agent_check_wanted() < 0 || MPI_DO(Iprobe, rank, tag, c->comm, flag, status))
		return -1;
	return *flag || mpi_now_ns() < until
		       ? 0
		       : agent_fail("other ranks have not come in time to "
				    "complete operations on MPI windows");
}

static int await_greeting(
	const struct mpi_window_control *c, int rank, int tag, uint64_t number)
{
	int flag, status[MPI_STATUS_INTS];
	uint64_t heard = 0;

	while (heard < number) {
		if (has_come(c, rank, tag, &flag))
			return -1;
		if (!flag)
			raw(SYS_sched_yield);
		else if (MPI_DO(Recv, &heard, sizeof(heard), BYTE, rank, tag, c->comm, status))
			return -1;
	}
	return heard == number ? 0
			       : agent_fail_for(LOWER_AGAIN,
					 "other ranks are at another checkpoint already");
}

/* Each hears of all others, directly or through others. */
static int meet_members(const struct mpi_window_control *c, uint64_t number)
{
	for (int tag = MPI_GREETING_TAGS, step = 1; step < c->size; tag++, step *= 2)
		if (send_greeting(c, (c->rank + step) % c->size, tag, number) ||
			await_greeting(c, (c->rank + c->size - step) % c->size, tag, number))
			return -1;
	return 0;
}

static int flush_windows(const struct mpi_state *s, const struct mpi_window_control *c)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct mpi_object *o = s->objects[i];

		if (o->real && o->kind == MPI_WINDOW && o->window && o->window->control == c &&
			MPI_DO(Win_flush_all, o->real))
			return -1;
	}
	return MPI_DO(Win_flush_all, c->real);
}

/* The library waits until the targets make progress: they do, as none leaves before all have finished. */
static int complete_windows(const struct mpi_state *s, const struct mpi_window_control *c)
{
	uint64_t number = 2ul * s->messages->drain_round;

	s->messages->windows = MPI_WINDOWS_AWAITED;
	if (meet_members(c, number))
		return -1;
	s->messages->windows = MPI_WINDOW_FLUSHED;
	return flush_windows(s, c) || meet_members(c, number + 1) ? -1 : 0;
}

/* The one that comes next in an order that is the same in all ranks; NULL: none. */
static const struct mpi_window_control *next_control(
	const struct mpi_state *s, const struct mpi_window_control *last)
{
	const struct mpi_window_control *next = NULL;

	for (const struct mpi_window_control *c = s->controls; c; c = c->next)
		if ((!last || c->number > last->number) && (!next || c->number < next->number))
			next = c;
	return next;
}

int windows_complete(struct mpi_state *s, uint64_t until_ns)
{
	static uint32_t completed; /* in which checkpoint */
	const struct mpi_window_control *c = NULL;
	int r = 0;

	if (completed == s->messages->drain_round)
		return 0;
	until = until_ns;
	while (!r && (c = next_control(s, c)))
		r = complete_windows(s, c);
	s->messages->windows = MPI_WINDOWS_COMPLETE;
	if (!r)
		completed = s->messages->drain_round;
	return r;
}
