/*
 * window_epochs.c - the program's epochs. A thread that waits for another rank to do something, for a lock say, is in a
 * loop of steps (requests.h), and what it waits for are words of memory (shared/mpi/window_records.h): so it can be
 * stopped there, and be continued elsewhere. Where the library itself waits until other ranks make progress, to
 * complete operations, no rank is stopped: such calls are counted (collective_gate.h).
 */
#include "stubs/crossing/crossing.h"
#include "stubs/mpi/collective_gate.h"
#include "stubs/mpi/messages.h"
#include "stubs/mpi/window_control.h"

#include "mpi.index.h"

enum {
	INT64 = 0x4c00083a,
	SUM = 0x58000003,
	LOCK_EXCLUSIVE = 234,
	LOCK_SHARED = 235,
	MODE_NOCHECK = 1024,
	MODE_NOSUCCEED = 16384,
	GROUP_NULL = MPI_KIND_NULL(MPI_GROUP),
};

struct window_call {
	struct message_call c; /* first: where the crossing looks for the step */
	struct mpi_window *w;
	int target, lock;
};

static struct window_call call_of(
	unsigned index, struct mpi_window *w, int (*step)(struct message_call *), int target)
{
	return (struct window_call){.c = {.step = step,
					    .index = index,
					    .comm = COMM_WORLD,
					    .datatype = BYTE,
					    .peer = MPI_PROC_NULL,
					    .status = STATUS_IGNORE},
		.w = w,
		.target = target};
}

static int is_rank(const struct mpi_window *w, int target)
{
	return (target >= 0 && target < w->size) || target == MPI_PROC_NULL;
}

/* ---- in steps: words of other ranks ---- */

/* Not waited for: what is added stays where it is. */
static int add_words(
	const struct mpi_window *w, int target, int word, const uint64_t *add, int count)
{
	return LOWER_CALL(MPI_Accumulate,
		(const void *, int, int, int, MPI_Aint, int, int, int, int))(add, count, INT64,
		target, mpi_control_word(w->size, w->place) + word, count, INT64, SUM,
		w->control->real);
}

static void make_progress(void)
{
	int flag;

	(void)LOWER_CALL(MPI_Iprobe, (int, int, int, int *, int32_t *))(
		0, MPI_UNUSED_TAG, COMM_WORLD, &flag, STATUS_IGNORE);
}

/* ---- locks ---- */

enum lock_phase {
	LOCK_NEW,
	LOCK_TICKET, /* a ticket is being fetched */
	LOCK_TURN,   /* whose turn it is is being fetched */
	LOCK_TAKEN,
};

/* Fetch the words of a lock and add to them. */
static int ask_lock(struct window_call *c, struct mpi_window_target *t, int target, int ticket)
{
	struct mpi_request *r = request_take();

	if (!r)
		return STEP_ROOM;
	t->add[MPI_WORD_TICKETS] = ticket;
	c->c.result = LOWER_CALL(MPI_Rget_accumulate,
		(const void *, int, int, void *, int, int, int, MPI_Aint, int, int, int, int,
			int32_t *))(t->add, MPI_LOCK_WORDS, INT64, t->got, MPI_LOCK_WORDS,
		INT64, target, mpi_control_word(c->w->size, c->w->place), MPI_LOCK_WORDS, INT64,
		SUM, c->w->control->real, &r->real);
	if (c->c.result) {
		request_untake(r);
		return STEP_DONE;
	}
	request_describe(r, &c->c);
	r->kind = MPI_NONBLOCKING_OTHER;
	request_posted(r);
	t->request = r;
	t->phase = ticket ? LOCK_TICKET : LOCK_TURN;
	return STEP_AGAIN;
}

/* 1: the words have come. */
static int has_come(struct window_call *c, struct mpi_window_target *t)
{
	struct mpi_request *r = t->request;
	int32_t status[MPI_STATUS_INTS];
	int flag = r->held;

	if (flag)
		c->c.result = r->error;
	for (int i = 0; i < STEP_LOOKS && !flag && !c->c.result; i++)
		c->c.result = LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(
			&r->real, &flag, status);
	if (!flag && !c->c.result)
		return 0;
	request_give_back(r);
	t->request = NULL;
	return 1;
}

static int is_its_turn(const struct window_call *c, const struct mpi_window_target *t)
{
	int word = c->lock == MPI_LOCKED_SHARED ? MPI_WORD_READS : MPI_WORD_WRITES;

	return t->got[word] == t->ticket;
}

static int advance_lock(struct window_call *c, int target)
{
	static const uint64_t next_may_read = 1;
	struct mpi_window_target *t = &c->w->targets[target];

	if (t->phase == LOCK_TAKEN)
		return STEP_DONE;
	if (t->phase == LOCK_NEW)
		return ask_lock(c, t, target, 1);
	if (t->request && !has_come(c, t))
		return STEP_AGAIN;
	if (c->c.result)
		return STEP_DONE;
	if (t->phase == LOCK_TICKET)
		t->ticket = t->got[MPI_WORD_TICKETS];
	t->phase = LOCK_TURN;
	if (!is_its_turn(c, t))
		return ask_lock(c, t, target, 0);
	t->phase = LOCK_TAKEN;
	if (c->lock == MPI_LOCKED_SHARED)
		c->c.result = add_words(c->w, target, MPI_WORD_READS, &next_may_read, 1);
	return STEP_DONE;
}

static int step_lock(struct message_call *call)
{
	struct window_call *c = (struct window_call *)call;
	int r = advance_lock(c, c->target);

	/* What has come at once is looked at in the same step. */
	return r == STEP_AGAIN ? advance_lock(c, c->target) : r;
}

static int step_lock_all(struct message_call *call)
{
	struct window_call *c = (struct window_call *)call;
	int result = STEP_DONE;

	for (int i = 0; i < c->w->size && !c->c.result; i++) {
		int r = advance_lock(c, i);

		if (r == STEP_ROOM)
			return r;
		if (r == STEP_AGAIN)
			result = r;
	}
	return c->c.result ? STEP_DONE : result;
}

/* In the library's own window it has been locked all the time. */
static int step_release(struct message_call *call)
{
	static const uint64_t both[] = {1, 1}, next_may_write = 1;
	struct window_call *c = (struct window_call *)call;
	int last = c->target < 0 ? c->w->size - 1 : c->target;

	for (int i = c->target < 0 ? 0 : c->target; i <= last && !c->c.result; i++) {
		struct mpi_window_target *t = &c->w->targets[i];

		if (t->lock == MPI_LOCKED_ALONE)
			c->c.result = add_words(c->w, i, MPI_WORD_READS, both, 2);
		if (t->lock == MPI_LOCKED_SHARED)
			c->c.result = add_words(c->w, i, MPI_WORD_WRITES, &next_may_write, 1);
		t->lock = MPI_UNLOCKED;
	}
	return STEP_DONE;
}

/* Other threads may lock other targets at the same time. */
static void count_lock(struct mpi_window *w, int by)
{
	static uint32_t lock;

	raw_lock(&lock);
	w->locks += by;
	if (w->locks == (uint32_t)(by > 0))
		w->access = by > 0 ? MPI_LOCKED : MPI_NO_ACCESS;
	raw_unlock(&lock);
}

static int is_locked(const struct mpi_window *w, int target)
{
	if (target == MPI_PROC_NULL)
		return w->null_locked != 0;
	return w->targets[target].lock != MPI_UNLOCKED;
}

static int may_lock(const struct mpi_window *w, int target)
{
	return w->access <= MPI_FENCED || (w->access == MPI_LOCKED && !is_locked(w, target));
}

static int take_lock(unsigned index, struct mpi_window *w, int target, int lock)
{
	struct window_call c = call_of(index, w, step_lock, target);
	int r = 0;

	c.lock = lock;
	if (lock != MPI_LOCKED_UNCHECKED) {
		w->targets[target].phase = LOCK_NEW;
		r = message_wait(&c.c);
	}
	if (!r)
		w->targets[target].lock = lock;
	return r;
}

extern STUB_HIDDEN int real_MPI_Win_lock(int type, int target, int assert, MPI_Win win),
	real_MPI_Win_lock_all(int assert, MPI_Win win),
	real_MPI_Win_unlock(int target, MPI_Win win), real_MPI_Win_unlock_all(MPI_Win win),
	real_MPI_Win_flush(int target, MPI_Win win), real_MPI_Win_flush_all(MPI_Win win),
	real_MPI_Win_flush_local(int target, MPI_Win win),
	real_MPI_Win_flush_local_all(MPI_Win win), real_MPI_Win_sync(MPI_Win win),
	real_MPI_Win_post(MPI_Group group, int assert, MPI_Win win),
	real_MPI_Win_start(MPI_Group group, int assert, MPI_Win win),
	real_MPI_Win_complete(MPI_Win win), real_MPI_Win_wait(MPI_Win win),
	real_MPI_Win_test(MPI_Win win, int *flag),
	real_MPI_Comm_group(MPI_Comm comm, MPI_Group *group),
	real_MPI_Group_size(MPI_Group group, int *size), real_MPI_Group_free(MPI_Group *group),
	real_MPI_Group_translate_ranks(
		MPI_Group group, int n, const int *ranks, MPI_Group other, int *others);

OPEN(MPI_Win_lock, (int type, int target, int assert, MPI_Win win))
{
	struct mpi_window *w = window_of(win);
	int r = 0;

	if (!w)
		return real_MPI_Win_lock(type, target, assert, win);
	if (type != LOCK_EXCLUSIVE && type != LOCK_SHARED)
		return window_failed(win, MPI_ERR_LOCKTYPE);
	if (!is_rank(w, target))
		return window_failed(win, MPI_ERR_RANK);
	if (!may_lock(w, target))
		return window_failed(win, MPI_ERR_RMA_SYNC);
	if (target == MPI_PROC_NULL)
		w->null_locked = 1;
	else
		r = take_lock(INDEX_MPI_Win_lock, w, target,
			assert &MODE_NOCHECK     ? MPI_LOCKED_UNCHECKED
			: type == LOCK_EXCLUSIVE ? MPI_LOCKED_ALONE
						 : MPI_LOCKED_SHARED);
	if (r)
		return window_failed(win, r);
	count_lock(w, 1);
	return 0;
}

OPEN(MPI_Win_lock_all, (int assert, MPI_Win win))
{
	struct mpi_window *w = window_of(win);
	struct window_call c;
	int r = 0;

	if (!w)
		return real_MPI_Win_lock_all(assert, win);
	if (w->access > MPI_FENCED)
		return window_failed(win, MPI_ERR_RMA_SYNC);
	c = call_of(INDEX_MPI_Win_lock_all, w, step_lock_all, 0);
	c.lock = assert &MODE_NOCHECK ? MPI_LOCKED_UNCHECKED : MPI_LOCKED_SHARED;
	for (int i = 0; i < w->size; i++)
		w->targets[i].phase = LOCK_NEW;
	if (c.lock == MPI_LOCKED_SHARED)
		r = message_wait(&c.c);
	if (r)
		return window_failed(win, r);
	for (int i = 0; i < w->size; i++)
		w->targets[i].lock = c.lock;
	w->access = MPI_LOCKED_ALL;
	return 0;
}

/* ---- operations are completed ---- */

/* Of one target, or all of them if @target is MPI_PROC_NULL. */
static int complete_operations(
	unsigned index, const struct mpi_window *w, MPI_Win win, int target, int local)
{
	struct mpi_count *count = w->size > 1 ? gate_enter_window(index) : NULL;
	int r;

	if (target == MPI_PROC_NULL)
		r = local ? real_MPI_Win_flush_local_all(win) : real_MPI_Win_flush_all(win);
	else
		r = local ? real_MPI_Win_flush_local(target, win)
			  : real_MPI_Win_flush(target, win);
	gate_leave(count);
	return r;
}

static int flush_one(unsigned index, struct mpi_window *w, MPI_Win win, int target, int local)
{
	if (!is_rank(w, target))
		return window_failed(win, MPI_ERR_RANK);
	if (w->access != MPI_LOCKED_ALL && (w->access != MPI_LOCKED || !is_locked(w, target)))
		return window_failed(win, MPI_ERR_RMA_SYNC);
	return target == MPI_PROC_NULL ? 0 : complete_operations(index, w, win, target, local);
}

OPEN(MPI_Win_flush, (int target, MPI_Win win))
{
	struct mpi_window *w = window_of(win);

	return w ? flush_one(INDEX_MPI_Win_flush, w, win, target, 0)
		 : real_MPI_Win_flush(target, win);
}

OPEN(MPI_Win_flush_local, (int target, MPI_Win win))
{
	struct mpi_window *w = window_of(win);

	return w ? flush_one(INDEX_MPI_Win_flush_local, w, win, target, 1)
		 : real_MPI_Win_flush_local(target, win);
}

static int flush_each(unsigned index, const struct mpi_window *w, MPI_Win win, int local)
{
	return w->access < MPI_LOCKED
		       ? window_failed(win, MPI_ERR_RMA_SYNC)
		       : complete_operations(index, w, win, MPI_PROC_NULL, local);
}

OPEN(MPI_Win_flush_all, (MPI_Win win))
{
	struct mpi_window *w = window_of(win);

	return w ? flush_each(INDEX_MPI_Win_flush_all, w, win, 0) : real_MPI_Win_flush_all(win);
}

OPEN(MPI_Win_flush_local_all, (MPI_Win win))
{
	struct mpi_window *w = window_of(win);

	return w ? flush_each(INDEX_MPI_Win_flush_local_all, w, win, 1)
		 : real_MPI_Win_flush_local_all(win);
}

/* Ranks look for what others have changed by it, again and again. */
OPEN(MPI_Win_sync, (MPI_Win win))
{
	const struct mpi_window *w = window_of(win);

	if (w && w->access < MPI_LOCKED)
		return window_failed(win, MPI_ERR_RMA_SYNC);
	mpi_messages.poll_call = INDEX_MPI_Win_sync;
	count_up(&mpi_messages.polls);
	return real_MPI_Win_sync(win);
}

OPEN(MPI_Win_unlock, (int target, MPI_Win win))
{
	struct mpi_window *w = window_of(win);
	struct window_call c;
	int r = 0;

	if (!w)
		return real_MPI_Win_unlock(target, win);
	if (!is_rank(w, target))
		return window_failed(win, MPI_ERR_RANK);
	if (w->access != MPI_LOCKED || !is_locked(w, target))
		return window_failed(win, MPI_ERR_RMA_SYNC);
	if (target == MPI_PROC_NULL) {
		w->null_locked = 0;
	} else {
		r = complete_operations(INDEX_MPI_Win_unlock, w, win, target, 0);
		c = call_of(INDEX_MPI_Win_unlock, w, step_release, target);
		if (!r)
			r = message_once(&c.c);
	}
	if (!r)
		count_lock(w, -1);
	return r;
}

OPEN(MPI_Win_unlock_all, (MPI_Win win))
{
	struct mpi_window *w = window_of(win);
	struct window_call c;
	int r;

	if (!w)
		return real_MPI_Win_unlock_all(win);
	if (w->access != MPI_LOCKED_ALL)
		return window_failed(win, MPI_ERR_RMA_SYNC);
	r = complete_operations(INDEX_MPI_Win_unlock_all, w, win, MPI_PROC_NULL, 0);
	c = call_of(INDEX_MPI_Win_unlock_all, w, step_release, -1);
	if (!r)
		r = message_once(&c.c);
	if (!r)
		w->access = MPI_NO_ACCESS;
	return r;
}

/* ---- fences ---- */

extern STUB_HIDDEN int body_MPI_Win_fence(int assert, MPI_Win win),
	real_MPI_Win_fence(int assert, MPI_Win win);

int body_MPI_Win_fence(int assert, MPI_Win win)
{
	struct mpi_window *w = window_of(win);
	int r;

	if (!w)
		return real_MPI_Win_fence(assert, win);
	if (w->access > MPI_FENCE_ACCESS || w->exposed)
		return window_failed(win, MPI_ERR_RMA_SYNC);
	r = real_MPI_Win_flush_all(win);
	if (!r)
		r = window_control_meet(w);
	if (!r)
		w->access = assert &MODE_NOSUCCEED ? MPI_NO_ACCESS : MPI_FENCED;
	return r;
}

/* ---- groups that post and start ---- */

struct group_query {
	struct mpi_window *w;
	MPI_Group group;
	int32_t *ranks, count;
};

#define TOGETHER 64

static int translate_group(struct group_query *q, MPI_Group all)
{
	int r = 0;

	for (int32_t i = 0; i < q->count && !r; i += TOGETHER) {
		int ranks[TOGETHER], n = q->count - i < TOGETHER ? q->count - i : TOGETHER;

		for (int k = 0; k < n; k++)
			ranks[k] = i + k;
		r = real_MPI_Group_translate_ranks(q->group, n, ranks, all, q->ranks + i);
		for (int k = 0; k < n && !r; k++)
			if (q->ranks[i + k] < 0)
				r = MPI_ERR_GROUP;
	}
	return r;
}

/* In a guarded body: the members' ranks in the window. */
static int find_ranks(void *argument)
{
	struct group_query *q = argument;
	MPI_Group all;
	int r = real_MPI_Group_size(q->group, &q->count);

	if (!r && q->count > q->w->size)
		r = MPI_ERR_GROUP;
	if (r)
		return r;
	r = real_MPI_Comm_group(q->w->control->comm, &all);
	if (r)
		return r;
	r = translate_group(q, all);
	real_MPI_Group_free(&all);
	return r;
}

static int set_group(struct mpi_window *w, MPI_Group group, int32_t *ranks, int32_t *count)
{
	struct group_query q = {w, group, ranks, 0};
	int r = group == GROUP_NULL ? MPI_ERR_GROUP : mpi_guarded(&q, find_ranks);

	if (!r)
		*count = q.count;
	return r;
}

/* Let each of the ranks know that this one has posted, or completed. */
static int step_tell(struct message_call *call)
{
	static const uint64_t one = 1;
	struct window_call *c = (struct window_call *)call;
	int post = c->c.index == INDEX_MPI_Win_post;
	const int32_t *ranks = post ? c->w->posted : c->w->started;
	int32_t count = post ? c->w->posted_count : c->w->started_count;
	int word = MPI_WORD_OF_RANKS + (post ? 0 : c->w->size) + c->w->rank;

	for (int32_t i = 0; i < count && !c->c.result; i++)
		c->c.result = add_words(c->w, ranks[i], word, &one, 1);
	return STEP_DONE;
}

/* Whether all of the ranks that are waited for have told so. */
static int have_told(const struct mpi_window *w, int posts)
{
	const int32_t *ranks = posts ? w->started : w->posted;
	int32_t count = posts ? w->started_count : w->posted_count;
	const uint64_t *words = w->words + MPI_WORD_OF_RANKS + (posts ? 0 : w->size);

	for (int32_t i = 0; i < count; i++) {
		const struct mpi_window_target *t = &w->targets[ranks[i]];
		uint64_t told = __atomic_load_n(&words[ranks[i]], __ATOMIC_ACQUIRE);

		if (told <= (posts ? t->posts : t->completions))
			return 0;
	}
	return 1;
}

static int look_whether_told(struct message_call *call, int posts, int looks)
{
	const struct window_call *c = (struct window_call *)call;

	while (looks--) {
		if (have_told(c->w, posts))
			return 1;
		make_progress();
	}
	return have_told(c->w, posts);
}

static int step_posts(struct message_call *call)
{
	return look_whether_told(call, 1, STEP_LOOKS) ? STEP_DONE : STEP_AGAIN;
}

static int step_completions(struct message_call *call)
{
	return look_whether_told(call, 0, STEP_LOOKS) ? STEP_DONE : STEP_AGAIN;
}

static int step_test(struct message_call *call)
{
	*call->flag = look_whether_told(call, 0, 1);
	if (!*call->flag) {
		mpi_messages.poll_call = call->index;
		count_up(&mpi_messages.polls);
	}
	return STEP_DONE;
}

OPEN(MPI_Win_post, (MPI_Group group, int assert, MPI_Win win))
{
	struct mpi_window *w = window_of(win);
	struct window_call c;
	int r;

	if (!w)
		return real_MPI_Win_post(group, assert, win);
	if (w->exposed)
		return window_failed(win, MPI_ERR_RMA_SYNC);
	r = set_group(w, group, w->posted, &w->posted_count);
	if (r)
		return window_failed(win, r);
	c = call_of(INDEX_MPI_Win_post, w, step_tell, 0);
	r = message_once(&c.c);
	if (!r)
		w->exposed = 1;
	return r ? window_failed(win, r) : 0;
}

OPEN(MPI_Win_start, (MPI_Group group, int assert, MPI_Win win))
{
	struct mpi_window *w = window_of(win);
	struct window_call c;
	int r;

	if (!w)
		return real_MPI_Win_start(group, assert, win);
	if (w->access > MPI_FENCED)
		return window_failed(win, MPI_ERR_RMA_SYNC);
	r = set_group(w, group, w->started, &w->started_count);
	c = call_of(INDEX_MPI_Win_start, w, step_posts, 0);
	if (!r)
		r = message_wait(&c.c);
	if (r)
		return window_failed(win, r);
	for (int32_t i = 0; i < w->started_count; i++) {
		w->targets[w->started[i]].posts++;
		w->targets[w->started[i]].started = 1;
	}
	w->access = MPI_STARTED;
	return 0;
}

OPEN(MPI_Win_complete, (MPI_Win win))
{
	struct mpi_window *w = window_of(win);
	struct window_call c;
	int r;

	if (!w)
		return real_MPI_Win_complete(win);
	if (w->access != MPI_STARTED)
		return window_failed(win, MPI_ERR_RMA_SYNC);
	r = complete_operations(INDEX_MPI_Win_complete, w, win, MPI_PROC_NULL, 0);
	c = call_of(INDEX_MPI_Win_complete, w, step_tell, 0);
	if (!r)
		r = message_once(&c.c);
	if (r)
		return r;
	for (int32_t i = 0; i < w->started_count; i++)
		w->targets[w->started[i]].started = 0;
	w->access = MPI_NO_ACCESS;
	return 0;
}

static void end_exposure(struct mpi_window *w)
{
	for (int32_t i = 0; i < w->posted_count; i++)
		w->targets[w->posted[i]].completions++;
	w->exposed = 0;
}

OPEN(MPI_Win_wait, (MPI_Win win))
{
	struct mpi_window *w = window_of(win);
	struct window_call c;
	int r;

	if (!w)
		return real_MPI_Win_wait(win);
	if (!w->exposed)
		return window_failed(win, MPI_ERR_RMA_SYNC);
	c = call_of(INDEX_MPI_Win_wait, w, step_completions, 0);
	r = message_wait(&c.c);
	if (!r)
		end_exposure(w);
	return r;
}

OPEN(MPI_Win_test, (MPI_Win win, int *flag))
{
	struct mpi_window *w = window_of(win);
	struct window_call c;
	int r;

	if (!w)
		return real_MPI_Win_test(win, flag);
	if (!w->exposed)
		return window_failed(win, MPI_ERR_RMA_SYNC);
	c = call_of(INDEX_MPI_Win_test, w, step_test, 0);
	c.c.flag = flag;
	r = message_once(&c.c);
	if (!r && *flag)
		end_exposure(w);
	return r;
}
