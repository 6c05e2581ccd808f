/*
 * User objects before a checkpoint and after a restart: their references have been counted (stubs/cuda/user_objects.c). In a
 * fresh driver an object is made with those of the program; graphs retain theirs; and of executables the snapshot does, until
 * it has been instantiated. No destructor is called by that, nor is one by a lower half that is left behind.
 */
#include <limits.h>

#include "lower/cuda/saved_graphs.h"

#define NO_DESTRUCTOR_SYNC 1 /* CU_USER_OBJECT_NO_DESTRUCTOR_SYNC */

static uint32_t end_of(const struct user_object *u)
{
	return __atomic_load_n(&u->end, __ATOMIC_ACQUIRE);
}

/* The driver calls destructors on a thread of its own, some time after the last reference has gone. */
int cuda_check_user_objects(const struct cuda_state *s)
{
	for (const struct user_object *u = s->user_objects; u; u = u->next) {
		uint32_t end = end_of(u);

		if (end == USER_OBJECT_ENDS || (!u->total && end != USER_OBJECT_ENDED))
			return agent_fail_for(LOWER_PENDING,
				"the destructor of a CUDA user object that has no references "
				"any more has not "
				"returned yet");
	}
	return 0;
}

/* The driver has called the destructor of one that has ended, whatever was counted. */
static int is_live(const struct user_object *u)
{
	return u->total && u->object && end_of(u) == USER_OBJECT_LIVES;
}

int user_objects_make(const struct cuda_state *s)
{
	for (struct user_object *u = s->user_objects; u; u = u->next) {
		int r;

		if (!is_live(u))
			continue;
		if (u->owned >= INT_MAX)
			return agent_fail("a CUDA user object with %lu references", u->owned);
		r = CUDA(cuUserObjectCreate, (void **, void *, void *, unsigned, unsigned))(
			&u->object->real, u, u->callback, u->owned + 1, NO_DESTRUCTOR_SYNC);
		if (r)
			return cuda_failed("cuUserObjectCreate", r);
	}
	return 0;
}

int user_objects_retain(const struct graph_state *state, void *graph)
{
	for (const struct user_reference *r = state->user_references; r; r = r->next) {
		int result = is_live(r->user)
				     ? CUDA(cuGraphRetainUserObject,
					       (void *, void *, unsigned, unsigned))(
					       graph, r->user->object->real, r->count, 0)
				     : 0;

		if (result)
			return cuda_failed("cuGraphRetainUserObject", result);
	}
	return 0;
}

int user_objects_release(const struct graph_state *state, void *graph)
{
	for (const struct user_reference *r = state->user_references; r; r = r->next) {
		int result = is_live(r->user) ? CUDA(cuGraphReleaseUserObject,
							(void *, void *, unsigned))(
							graph, r->user->object->real, r->count)
					      : 0;

		if (result)
			return cuda_failed("cuGraphReleaseUserObject", result);
	}
	return 0;
}

int user_objects_made(const struct cuda_state *s)
{
	for (const struct user_object *u = s->user_objects; u; u = u->next) {
		int r = is_live(u) ? CUDA(cuUserObjectRelease, (void *, unsigned))(
					     u->object->real, 1)
				   : 0;

		if (r)
			return cuda_failed("cuUserObjectRelease", r);
	}
	return 0;
}
