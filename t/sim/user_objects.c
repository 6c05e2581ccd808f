/*
 * User objects and who has references to them: the program, graphs, their clones and executables. As NVIDIA's programming guide
 * has it, what an executable releases while it runs is released when it has run; destructors are called one after the
 * other, on a thread of the driver's own.
 */
#include <pthread.h>
#include <stdlib.h>

#include "t/sim/graph.h"
#include "t/sim/stream.h"

#define MOVE 1

struct user_object {
	struct object object;
	void (*destroy)(void *);
	void *data;
	unsigned long count;
	struct user_object *next; /* to end */
};

struct sim_reference {
	struct user_object *user;
	unsigned long count;
	struct sim_reference *next;
};

SIM_EXPORT int cuUserObjectCreate(void **object, void *data, void (*destroy)(void *),
	unsigned references, unsigned flags);
SIM_EXPORT int cuUserObjectRetain(void *object, unsigned count);
SIM_EXPORT int cuUserObjectRelease(void *object, unsigned count);
SIM_EXPORT int cuGraphRetainUserObject(
	void *graph, void *object, unsigned count, unsigned flags);
SIM_EXPORT int cuGraphReleaseUserObject(void *graph, void *object, unsigned count);

int cuStreamQuery(void *stream);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ending = PTHREAD_COND_INITIALIZER;
static struct user_object *first, **last;

static void *call_destructors(void *argument)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct user_object *u = first;

		if (!u) {
			pthread_cond_wait(&ending, &lock);
			continue;
		}
		first = u->next;
		if (!first)
			last = &first;
		pthread_mutex_unlock(&lock);
		u->destroy(u->data);
		free(u);
		pthread_mutex_lock(&lock);
	}
	return argument;
}

/* Under the lock. */
static void end(struct user_object *u)
{
	pthread_t thread;

	object_forget(&u->object);
	if (!last) {
		last = &first;
		pthread_create(&thread, NULL, call_destructors, NULL);
		pthread_detach(thread);
	}
	*last = u;
	last = &u->next;
	pthread_cond_signal(&ending);
}

static int change(struct user_object *u, long by)
{
	int r = 0;

	pthread_mutex_lock(&lock);
	if (by < 0 && (unsigned long)-by > u->count)
		r = SIM_INVALID_VALUE;
	else
		u->count += by;
	if (!r && !u->count)
		end(u);
	pthread_mutex_unlock(&lock);
	return r;
}

static struct user_object *get(void *object, const char *function)
{
	return object_get(OBJECT_USER_OBJECT, object, function);
}

int cuUserObjectCreate(
	void **object, void *data, void (*destroy)(void *), unsigned references, unsigned flags)
{
	struct user_object *u;

	SIM_ENTER();
	if (!object || !destroy || !references || flags != 1)
		return SIM_INVALID_VALUE;
	u = object_new(OBJECT_USER_OBJECT, sizeof(*u));
	u->destroy = destroy;
	u->data = data;
	u->count = references;
	*object = u;
	return 0;
}

int cuUserObjectRetain(void *object, unsigned count)
{
	struct user_object *u;

	SIM_ENTER();
	u = get(object, __func__);
	return u && count ? change(u, count) : SIM_INVALID_VALUE;
}

int cuUserObjectRelease(void *object, unsigned count)
{
	struct user_object *u;

	SIM_ENTER();
	u = get(object, __func__);
	return u && count ? change(u, -(long)count) : SIM_INVALID_VALUE;
}

/* ---- of graphs ---- */

static void add(struct sim_graph *g, struct user_object *u, unsigned long count)
{
	struct sim_reference *r = g->references;

	while (r && r->user != u)
		r = r->next;
	if (!r) {
		r = calloc(1, sizeof(*r));
		r->user = u;
		r->next = g->references;
		g->references = r;
	}
	r->count += count;
}

int cuGraphRetainUserObject(void *graph, void *object, unsigned count, unsigned flags)
{
	struct sim_graph *g;
	struct user_object *u;
	int r;

	SIM_ENTER();
	g = graph_get(graph, __func__);
	u = get(object, __func__);
	if (!g || !u || !count || flags & ~(unsigned)MOVE)
		return SIM_INVALID_VALUE;
	r = flags & MOVE ? 0 : change(u, count);
	if (!r)
		add(g, u, count);
	return r;
}

int cuGraphReleaseUserObject(void *graph, void *object, unsigned count)
{
	struct sim_reference **at, *r;
	struct user_object *u;
	struct sim_graph *g;

	SIM_ENTER();
	g = graph_get(graph, __func__);
	u = get(object, __func__);
	if (!g || !u)
		return SIM_INVALID_VALUE;
	for (at = &g->references; *at && (*at)->user != u;)
		at = &(*at)->next;
	r = *at;
	if (!r || !count || r->count < count)
		return SIM_INVALID_VALUE;
	r->count -= count;
	if (!r->count) {
		*at = r->next;
		free(r);
	}
	return change(u, -(long)count);
}

void graph_copy_references(struct sim_graph *to, const struct sim_graph *from)
{
	for (const struct sim_reference *r = from->references; r; r = r->next) {
		change(r->user, r->count);
		add(to, r->user, r->count);
	}
}

static void release(void *data)
{
	struct sim_reference *next;

	for (struct sim_reference *r = *(struct sim_reference **)data; r; r = next) {
		next = r->next;
		change(r->user, -(long)r->count);
		free(r);
	}
}

void graph_exchange_references(struct sim_graph *to, const struct sim_graph *from)
{
	struct sim_reference *before = to->references, *more;

	to->references = NULL;
	graph_copy_references(to, from);
	more = to->references;
	to->references = before;
	graph_drop_references(to);
	to->references = more;
}

void graph_drop_references(struct sim_graph *g)
{
	const struct sim_graph *whole = graph_whole(g);
	struct sim_reference *list = g->references;
	void *data;

	g->references = NULL;
	if (!list)
		return;
	data = stream_data(&list, sizeof(list));
	if (whole->is_launched && cuStreamQuery(whole->stream) == SIM_NOT_READY &&
		!stream_queue(whole->stream, release, data, __func__))
		return;
	release(data);
	free(data);
}
