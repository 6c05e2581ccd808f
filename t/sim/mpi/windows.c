/*
 * Windows, as the lower half has them: in a passive epoch from their making to their end. What is begun at another rank is
 * done when that rank is in a call, not by its thread, and answered then; of what is under way to one rank only
 * accumulating operations stay in their order. Some are not even sent for a while,
 * unless they are to be completed. Memory of the origin is read as late as can be.
 */
#include <stdlib.h>
#include <string.h>

#include "messages.h"

#define CHUNK   4000
#define KEPT_NS 100000000

enum what {
	PUT,
	GET,
	ACCUMULATE, /* and what was there before is the result, if one is wanted */
	SWAP,       /* if it is as the first element, by the second */
};

struct window {
	struct window *next;
	int handle;
	uint64_t context; /* of operations: that of its communicator */
	MPI_Comm comm;
	struct comm *of; /* the same */
	char *base;      /* NULL: places are addresses */
	int64_t bytes, unit;
	bool dynamic, locked;
	MPI_Errhandler handler;
	char name[MPI_MAX_OBJECT_NAME];
	unsigned under_way[RANKS_MAX]; /* by target: frames that are not answered */
	struct kept *kept[RANKS_MAX];  /* the same: not sent yet, the oldest first */
	uint64_t until;                /* when all of them are */
};

struct kept {
	struct kept *next;
	struct frame frame;
	const void *from;
};

static struct window *windows;
static struct arrival *operations; /* at this rank, the oldest first */

/* ---- at the target ---- */

static struct window *window_of_context(uint64_t context)
{
	struct window *w = windows;

	while (w && w->context != context)
		w = w->next;
	return w;
}

void window_operation(struct arrival *a)
{
	struct arrival **end = &operations;

	a->visible = sim_later();
	while (*end)
		end = &(*end)->next;
	*end = a;
}

static char *place_of(const struct window *w, const struct frame *f, uint64_t bytes)
{
	if (w->dynamic)
		return (char *)f->offset;
	if (f->offset + bytes > (uint64_t)w->bytes)
		sim_fatal("an operation leads out of its window");
	return w->base + f->offset;
}

static void change(const struct frame *f, char *to, const char *from)
{
	switch (f->what) {
	case PUT:
		memcpy(to, from, f->bytes);
		break;
	case ACCUMULATE:
		if (f->op != MPI_NO_OP)
			collective_combine(f->op, f->type, to, from, f->bytes);
		break;
	case SWAP:
		if (!memcmp(to, from, f->size))
			memcpy(to, from + f->size, f->size);
		break;
	}
}

/* It is answered, with what was there before if that is wanted. */
static void perform(const struct arrival *a)
{
	const struct frame *f = &a->frame;
	const struct window *w = window_of_context(f->context);
	struct frame answer = {.kind = OPERATION_DONE, .receiver = f->sender, .offset = f->at};
	char *to, *before = NULL;

	if (!w)
		sim_fatal("an operation on a window that has been freed");
	to = place_of(w, f, f->size);
	if (f->fetches) {
		before = malloc(f->size + 1);
		if (!before)
			sim_fatal("no memory for an answer");
		memcpy(before, to, f->size);
		answer.bytes = f->size;
	}
	change(f, to, a->bytes);
	wire_send_own(a->from, &answer, before);
}

/* Those that accumulate stay behind each other. */
static bool may_be_first(const struct arrival *a)
{
	if (sim_now() < a->visible || !sim_chance(3))
		return false;
	for (const struct arrival *b = operations; b != a; b = b->next)
		if (b->from == a->from && b->frame.context == a->frame.context &&
			b->frame.what >= ACCUMULATE && a->frame.what >= ACCUMULATE)
			return false;
	return true;
}

static void send_kept(struct window *w, int target);

void windows_progress(void)
{
	for (struct window *w = windows; w; w = w->next)
		for (int i = 0; i < sim_size && sim_now() >= w->until; i++)
			send_kept(w, i);
	for (struct arrival **at = &operations; *at;) {
		struct arrival *a = *at;

		if (!may_be_first(a)) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		perform(a);
		free(a);
	}
}

/* ---- at the origin ---- */

void window_answered(struct request *r, const struct arrival *a)
{
	struct window *w = window_of_context(r->context);

	if (!w)
		sim_fatal("an answer for a window that has been freed");
	memcpy(r->buffer + a->frame.offset, a->bytes, a->frame.bytes);
	w->under_way[r->peer]--;
	if (!--r->room)
		request_done(r);
}

struct operation {
	enum what what;
	const char *from; /* NULL: nothing goes there */
	char *result;     /* NULL: nothing comes back */
	int64_t bytes, each;
	MPI_Datatype type;
	MPI_Op op;
	int target;
	MPI_Aint at;
};

static void send_kept(struct window *w, int target)
{
	struct kept *k;

	while ((k = w->kept[target])) {
		w->kept[target] = k->next;
		wire_send(w->of->group.world[target], &k->frame, k->from, NULL);
		free(k);
	}
}

static void keep(struct window *w, int target, const struct frame *f, const void *from)
{
	struct kept *k = calloc(1, sizeof(*k)), **end = &w->kept[target];

	if (!k)
		sim_fatal("no memory for an operation");
	k->frame = *f;
	k->from = from;
	while (*end)
		end = &(*end)->next;
	*end = k;
}

static void begin_chunk(struct window *w, struct request *r, const struct operation *o,
	int64_t at, int64_t bytes)
{
	struct frame f = {.kind = OPERATION,
		.context = w->context,
		.what = o->what,
		.type = o->type,
		.op = o->op,
		.fetches = o->result != NULL,
		.offset = (w->dynamic ? o->at : o->at * w->unit) + at,
		.at = at,
		.size = bytes,
		.bytes = !o->from          ? 0
			 : o->what == SWAP ? 2 * bytes
					   : bytes,
		.sender = r->id};

	r->room++;
	w->under_way[o->target]++;
	keep(w, o->target, &f, o->from ? o->from + at : NULL);
}

static struct request *begin(struct window *w, const struct operation *o)
{
	struct request *r = request_new(OPERATES, w->of);
	int64_t step = o->each ? CHUNK / o->each * o->each : CHUNK;

	r->context = w->context;
	r->peer = o->target;
	r->buffer = o->result;
	if (o->what == SWAP) {
		memcpy(r->own, o->from, 2 * o->bytes);
		begin_chunk(w, r,
			&(struct operation){SWAP, r->own, o->result, o->bytes, o->each, o->type,
				o->op, o->target, o->at},
			0, o->bytes);
		return r;
	}
	if (o->target == MPI_PROC_NULL || !o->bytes)
		request_done(r);
	else
		for (int64_t at = 0; at < o->bytes; at += step)
			begin_chunk(w, r, o, at, o->bytes - at < step ? o->bytes - at : step);
	return r;
}

static int window_failed(const struct window *w, int error)
{
	if (error && (!w || w->handler == MPI_ERRORS_ARE_FATAL))
		sim_fatal("error %d on a window whose errors are fatal", error);
	return error;
}

static int check(const struct window *w, const struct operation *o)
{
	if (!w)
		return MPI_ERR_WIN;
	if (!w->locked)
		return MPI_ERR_RMA_SYNC;
	if (o->bytes < 0 || o->bytes % (o->each ? o->each : 1))
		return MPI_ERR_TYPE;
	return (o->target < 0 || o->target >= w->of->group.size) && o->target != MPI_PROC_NULL
		       ? MPI_ERR_RANK
		       : 0;
}

/* @request NULL: the library's own, which ends by itself. */
static int operate(MPI_Win win, struct operation o, MPI_Request *request)
{
	struct window *w;
	struct request *r;
	int error;

	sim_lock();
	w = handle_find(WINDOW, win);
	o.each = type_bytes(o.type, 1);
	error = check(w, &o);
	if (!error && request && !handle_left(REQUEST))
		error = MPI_ERR_OTHER;
	if (!error) {
		r = begin(w, &o);
		r->freed = !request;
		if (!sim_chance(16))
			w->until = sim_now() + sim_chance(KEPT_NS);
		if (request && o.target != MPI_PROC_NULL)
			send_kept(w, o.target);
		if (request)
			r->handle = *request = handle_make(REQUEST, r);
		sim_progress();
	}
	sim_unlock();
	return window_failed(w, error);
}

/* Both sides are to have as much of one type. */
static void check_same(int count, MPI_Datatype type, int there, MPI_Datatype type_there)
{
	if (count != there || type != type_there)
		sim_fatal("an operation between two datatypes is not simulated");
}

#define PLACE .target = target, .at = at

int MPI_Put(const void *from, int count, MPI_Datatype type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Win win)
{
	return MPI_Rput(from, count, type, target, at, there, type_there, win, NULL);
}

int MPI_Rput(const void *from, int count, MPI_Datatype type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Win win, MPI_Request *request)
{
	check_same(count, type, there, type_there);
	return operate(win,
		(struct operation){.what = PUT,
			.from = from,
			.bytes = type_bytes(type, count),
			.type = type,
			PLACE},
		request);
}

int MPI_Get(void *result, int count, MPI_Datatype type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Win win)
{
	return MPI_Rget(result, count, type, target, at, there, type_there, win, NULL);
}

int MPI_Rget(void *result, int count, MPI_Datatype type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Win win, MPI_Request *request)
{
	check_same(count, type, there, type_there);
	return operate(win,
		(struct operation){.what = GET,
			.result = result,
			.bytes = type_bytes(type, count),
			.type = type,
			PLACE},
		request);
}

int MPI_Accumulate(const void *from, int count, MPI_Datatype type, int target, MPI_Aint at,
	int there, MPI_Datatype type_there, MPI_Op op, MPI_Win win)
{
	return MPI_Raccumulate(from, count, type, target, at, there, type_there, op, win, NULL);
}

int MPI_Raccumulate(const void *from, int count, MPI_Datatype type, int target, MPI_Aint at,
	int there, MPI_Datatype type_there, MPI_Op op, MPI_Win win, MPI_Request *request)
{
	check_same(count, type, there, type_there);
	return operate(win,
		(struct operation){.what = ACCUMULATE,
			.from = from,
			.bytes = type_bytes(type, count),
			.type = type,
			.op = op,
			PLACE},
		request);
}

int MPI_Get_accumulate(const void *from, int count, MPI_Datatype type, void *result,
	int results, MPI_Datatype result_type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Op op, MPI_Win win)
{
	return MPI_Rget_accumulate(from, count, type, result, results, result_type, target, at,
		there, type_there, op, win, NULL);
}

int MPI_Rget_accumulate(const void *from, int count, MPI_Datatype type, void *result,
	int results, MPI_Datatype result_type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Op op, MPI_Win win, MPI_Request *request)
{
	(void)count, (void)type;
	check_same(results, result_type, there, type_there);
	return operate(win,
		(struct operation){.what = ACCUMULATE,
			.from = op == MPI_NO_OP ? NULL : from,
			.result = result,
			.bytes = type_bytes(type_there, there),
			.type = type_there,
			.op = op,
			PLACE},
		request);
}

int MPI_Fetch_and_op(const void *from, void *result, MPI_Datatype type, int target, MPI_Aint at,
	MPI_Op op, MPI_Win win)
{
	return MPI_Get_accumulate(from, 1, type, result, 1, type, target, at, 1, type, op, win);
}

int MPI_Compare_and_swap(const void *from, const void *compared, void *result,
	MPI_Datatype type, int target, MPI_Aint at, MPI_Win win)
{
	int64_t bytes = type_bytes(type, 1);
	char both[2 * ELEMENT_MAX];

	if (bytes < 0 || bytes > ELEMENT_MAX)
		sim_fatal("elements of type 0x%x are not compared", type);
	memcpy(both, compared, bytes);
	memcpy(both + bytes, from, bytes);
	return operate(win,
		(struct operation){.what = SWAP,
			.from = both,
			.result = result,
			.bytes = bytes,
			.type = type,
			PLACE},
		NULL);
}

/* ---- epochs ---- */

static bool is_under_way(const struct window *w, int target)
{
	bool is = false;

	for (int i = 0; i < w->of->group.size; i++)
		is |= (target < 0 || i == target) && w->under_way[i];
	return is;
}

/* Of one target, or all of them if that is less than 0. */
static int flush(MPI_Win win, int target)
{
	struct window *w;
	int error;

	sim_lock();
	w = handle_find(WINDOW, win);
	error = !w ? MPI_ERR_WIN : w->locked ? 0 : MPI_ERR_RMA_SYNC;
	for (int i = 0; !error && i < w->of->group.size; i++)
		if (target < 0 || i == target)
			send_kept(w, i);
	sim_progress();
	while (!error && is_under_way(w, target))
		sim_pause();
	sim_unlock();
	return window_failed(w, error);
}

int MPI_Win_flush(int target, MPI_Win win)
{
	return flush(win, target);
}

int MPI_Win_flush_local(int target, MPI_Win win)
{
	return flush(win, target);
}

int MPI_Win_flush_all(MPI_Win win)
{
	return flush(win, -1);
}

int MPI_Win_flush_local_all(MPI_Win win)
{
	return flush(win, -1);
}

int MPI_Win_sync(MPI_Win win)
{
	struct window *w;

	sim_lock();
	w = handle_find(WINDOW, win);
	sim_progress();
	sim_unlock();
	return window_failed(w, w ? 0 : MPI_ERR_WIN);
}

static int set_locked(MPI_Win win, bool locked)
{
	struct window *w;
	int error;

	sim_lock();
	w = handle_find(WINDOW, win);
	error = !w ? MPI_ERR_WIN : w->locked == locked ? MPI_ERR_RMA_SYNC : 0;
	if (!error)
		w->locked = locked;
	sim_unlock();
	return window_failed(w, error);
}

int MPI_Win_lock_all(int assert, MPI_Win win)
{
	if (!(assert &MPI_MODE_NOCHECK))
		sim_fatal("locks of windows are not simulated");
	return set_locked(win, true);
}

int MPI_Win_unlock_all(MPI_Win win)
{
	int r = flush(win, -1);

	return r ? r : set_locked(win, false);
}

/* ---- made and freed ---- */

static int make(void *base, MPI_Aint bytes, int unit, bool dynamic, MPI_Comm comm, MPI_Win *win)
{
	struct window *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		sim_fatal("no memory for a window");
	r = MPI_Comm_dup(comm, &w->comm);
	if (r) {
		free(w);
		return r;
	}
	sim_lock();
	w->of = comm_find(w->comm);
	w->context = w->of->context;
	w->base = base;
	w->bytes = bytes;
	w->unit = unit;
	w->dynamic = dynamic;
	w->handler = MPI_ERRORS_ARE_FATAL;
	w->handle = *win = handle_make(WINDOW, w);
	w->next = windows;
	windows = w;
	/* Nobody begins anything before all have it. */
	r = collective_barrier(w->of);
	sim_unlock();
	return r;
}

int MPI_Win_create(
	void *base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
	(void)info;
	return make(base, bytes, unit, false, comm, win);
}

int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
	(void)info;
	return make(NULL, 0, 1, true, comm, win);
}

int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint bytes)
{
	(void)win, (void)base, (void)bytes;
	return 0;
}

int MPI_Win_detach(MPI_Win win, const void *base)
{
	(void)win, (void)base;
	return 0;
}

int MPI_Win_free(MPI_Win *win)
{
	struct window *w, **at = &windows;
	MPI_Comm comm;

	sim_lock();
	w = handle_find(WINDOW, *win);
	if (!w || w->locked || is_under_way(w, -1))
		sim_fatal("a window is freed that is none, locked or in use");
	collective_barrier(w->of);
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	handle_drop(WINDOW, w->handle);
	*win = MPI_WIN_NULL;
	sim_unlock();
	comm = w->comm;
	free(w);
	return MPI_Comm_free(&comm);
}

/* ---- what is asked of them ---- */

#define OF_WINDOW(name, parameters, ...)                                                       \
	int name parameters                                                                    \
	{                                                                                      \
		struct window *w;                                                              \
                                                                                               \
		sim_lock();                                                                    \
		w = handle_find(WINDOW, win);                                                  \
		if (w)                                                                         \
			__VA_ARGS__;                                                           \
		sim_unlock();                                                                  \
		return window_failed(w, w ? 0 : MPI_ERR_WIN);                                  \
	}

OF_WINDOW(MPI_Win_get_name, (MPI_Win win, char *name, int *length),
	*length = (int)strlen(strcpy(name, w->name)))
OF_WINDOW(MPI_Win_set_name, (MPI_Win win, const char *name),
	*stpncpy(w->name, name, sizeof(w->name) - 1) = 0)
OF_WINDOW(MPI_Win_get_errhandler, (MPI_Win win, MPI_Errhandler *handler), *handler = w->handler)
OF_WINDOW(MPI_Win_set_errhandler, (MPI_Win win, MPI_Errhandler handler), w->handler = handler)
OF_WINDOW(MPI_Win_call_errhandler, (MPI_Win win, int error), window_failed(w, error))
OF_WINDOW(MPI_Win_get_attr, (MPI_Win win, int key, void *value, int *flag),
	*flag = 0 * (key + (value != NULL)))

int MPI_Win_get_info(MPI_Win win, MPI_Info *info)
{
	(void)win;
	return MPI_Info_create(info);
}
