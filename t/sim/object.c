/*
 * object.c - a table of live records, and what to say of a freed one.
 */
#include "t/sim/object.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "t/sim/sim.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *live;
static void *dead[4096]; /* handles of the past: used again, they are an error and no more */
static unsigned dead_count;

/* Leaves out some places, so that no two processes have the same handles: the lower half's
 * malloc gives the same ones to the same calls. */
static void slide(unsigned long size)
{
	static void *volatile left_out
		__attribute__((unused)); /* seen by nobody, a malloc would not be made */
	unsigned char places;

	if (getrandom(&places, 1, 0) == 1)
		for (unsigned i = 0; i < places % 8u; i++)
			left_out = malloc(size);
}

void *object_new(enum object_kind kind, unsigned long size)
{
	struct object *o;

	pthread_mutex_lock(&lock);
	slide(size);
	o = calloc(1, size);
	if (o) {
		o->kind = kind;
		o->next = live;
		live = o;
	}
	pthread_mutex_unlock(&lock);
	return o;
}

void object_adopt(enum object_kind kind, struct object *object)
{
	pthread_mutex_lock(&lock);
	object->kind = kind;
	object->next = live;
	live = object;
	pthread_mutex_unlock(&lock);
}

static int was_freed(const void *handle)
{
	for (unsigned i = 0; i < dead_count && i < 4096; i++)
		if (dead[i] == handle)
			return 1;
	return 0;
}

void *object_get(enum object_kind kind, void *handle, const char *function)
{
	struct object *o;
	int known;

	pthread_mutex_lock(&lock);
	for (o = live; o && o != handle; o = o->next)
		;
	known = o || !handle || was_freed(handle);
	pthread_mutex_unlock(&lock);
	if (!known)
		sim_hostile("a handle that this driver never gave out", function);
	return o && o->kind == kind ? o : NULL;
}

void object_forget(struct object *object)
{
	struct object **p = &live;

	pthread_mutex_lock(&lock);
	while (*p != object)
		p = &(*p)->next;
	*p = (*p)->next;
	dead[dead_count++ % 4096] = object;
	pthread_mutex_unlock(&lock);
}

void object_free(void *object)
{
	object_forget(object);
	free(object);
}
