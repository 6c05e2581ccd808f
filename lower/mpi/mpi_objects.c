/* All objects of the MPI library: asked about at a checkpoint, made again at a restart. */
#include "lower/mpi/mpi_objects.h"

#include <stdlib.h>
#include <string.h>

#include "lower/mpi/files_replay.h"
#include "lower/mpi/functions.h"
#include "lower/mpi/windows_replay.h"
#include "lower/runtime.h"

/* 0: there is no such object; the library does not look at all that it is given. */
int mpi_real(const struct mpi_state *s, int handle)
{
	uint32_t index = handle & MPI_HANDLES_MASK;

	if (!mpi_is_virtual(handle))
		return handle;
	return index < s->count && s->objects[index]->handle == handle ? s->objects[index]->real
								       : 0;
}

struct mpi_object *mpi_comm(struct mpi_state *s, int handle)
{
	struct mpi_object *o;

	if (handle == MPI_COMM_WORLD || handle == MPI_COMM_SELF)
		return handle == MPI_COMM_SELF ? &s->self : &s->world;
	if (!mpi_is_virtual(handle) || (handle & MPI_HANDLES_MASK) >= s->count)
		return NULL;
	o = s->objects[handle & MPI_HANDLES_MASK];
	return o->real && o->handle == handle ? o : NULL;
}

struct mpi_object *mpi_object_of_real(struct mpi_state *s, int real)
{
	struct mpi_object *o = mpi_find(s, real);

	return o && o != &s->world && o != &s->self ? o : NULL;
}

/* ---- a checkpoint ---- */

static int save_object(struct mpi_state *s, struct mpi_object *o)
{
	o->saved.size = 0;
	switch (o->kind) {
	case MPI_COMM:
		return comm_save(o) < 0 ? -1 : settings_save(s, o);
	case MPI_DATATYPE:
		return datatype_save(s, o) < 0 ? -1 : settings_save(s, o);
	case MPI_GROUP:
		return group_save(&o->saved, o->real);
	case MPI_INFO:
		return info_save(&o->saved, o->real);
	case MPI_WINDOW:
		return window_save(o) < 0 ? -1 : settings_save(s, o);
	case MPI_SESSION:
		return session_save(s, o);
	}
	return 0; /* all is known of it */
}

static int save_predefined(struct mpi_state *s, struct mpi_object *o)
{
	o->saved.size = 0;
	return settings_save(s, o);
}

int objects_save(struct mpi_state *s)
{
	if (mpi_functions_find() < 0)
		return -1;
	for (uint32_t i = 0; i < s->count; i++)
		if (s->objects[i]->real && save_object(s, s->objects[i]) < 0)
			return -1;
	if (!s->initialised)
		return 0;
	return save_predefined(s, &s->world) < 0 || save_predefined(s, &s->self) < 0
		       ? -1
		       : files_save(s);
}

/* ---- a restart ---- */

static int make_handler(struct mpi_object *o)
{
	switch (o->subject) {
	case MPI_OF_COMM:
		return MPI_DO(Comm_create_errhandler, o->function, &o->real);
	case MPI_OF_WINDOW:
		return MPI_DO(Win_create_errhandler, o->function, &o->real);
	case MPI_OF_FILE:
		return MPI_DO(File_create_errhandler, o->function, &o->real);
	}
	return MPI_DO(Session_create_errhandler, o->function, &o->real);
}

static int make_keyval(struct mpi_object *o)
{
	switch (o->subject) {
	case MPI_OF_COMM:
		return MPI_DO(Comm_create_keyval, o->lower_copy, o->lower_remove, &o->real, o);
	case MPI_OF_DATATYPE:
		return MPI_DO(Type_create_keyval, o->lower_copy, o->lower_remove, &o->real, o);
	}
	return MPI_DO(Win_create_keyval, o->lower_copy, o->lower_remove, &o->real, o);
}

static int make_op(struct mpi_object *o)
{
	return o->large ? MPI_DO(Op_create_c, o->function, o->commutes, &o->real)
			: MPI_DO(Op_create, o->function, o->commutes, &o->real);
}

static uint64_t number_of(const struct mpi_object *o)
{
	return (o->kind == MPI_COMM || o->kind == MPI_WINDOW) && o->count ? o->count->number
									  : 0;
}

static int make_session(struct mpi_object *o, struct saved_reader *r)
{
	int handler;

	return session_make(o, r, &handler) < 0 ? -1 : handler_keep(o, handler);
}

static int make_object(struct mpi_state *s, struct mpi_object *o, struct saved_reader *r)
{
	switch (o->kind) {
	case MPI_COMM:
		return comm_make(r, &o->real, number_of(o) & 0x7fff);
	case MPI_DATATYPE:
		return datatype_make(s, o, r);
	case MPI_GROUP:
		return group_make(r, &o->real);
	case MPI_INFO:
		return info_make(r, &o->real);
	case MPI_WINDOW:
		return window_make(o, r);
	case MPI_SESSION:
		return make_session(o, r);
	case MPI_OP:
		return make_op(o);
	case MPI_ERRHANDLER:
		return make_handler(o);
	case MPI_KEYVAL:
		return make_keyval(o);
	}
	return agent_fail("an MPI object is of an unknown kind: %u", o->kind);
}

/* Communicators and windows last, and in the same order in all ranks, so that none waits for another in a circle.
 * Nothing is made of them. */
static int by_order_of_making(const void *a, const void *b)
{
	const struct mpi_object *x = *(struct mpi_object *const *)a;
	const struct mpi_object *y = *(struct mpi_object *const *)b;
	uint64_t m = number_of(x), n = number_of(y);

	if (m != n)
		return m < n ? -1 : 1;
	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static void insert_by_handle(struct mpi_state *s, struct mpi_object *o)
{
	struct mpi_object **bucket = mpi_bucket(s, o->real);

	o->next = *bucket;
	*bucket = o;
}

static int has_settings(const struct mpi_object *o)
{
	return o->kind == MPI_COMM || o->kind == MPI_DATATYPE || o->kind == MPI_WINDOW;
}

/* First all, then what is set of them: that refers to others. */
static int make_all(struct mpi_state *s, struct mpi_object **objects,
	struct saved_reader *readers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct mpi_object *o = objects[i];

		readers[i].at = o->saved.bytes;
		if (make_object(s, o, &readers[i]) < 0)
			return -1;
		s->reals[o->index] = o->real;
		insert_by_handle(s, o);
	}
	for (uint32_t i = 0; i < count; i++)
		if (has_settings(objects[i]) && settings_make(s, objects[i], &readers[i]) < 0)
			return -1;
	return 0;
}

static int make_predefined(struct mpi_state *s, struct mpi_object *o)
{
	struct saved_reader r = {o->saved.bytes};

	return s->initialised ? settings_make(s, o, &r) : 0;
}

static uint32_t list_objects(struct mpi_state *s, struct mpi_object **objects)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->count; i++)
		if (s->objects[i]->real)
			objects[count++] = s->objects[i];
	qsort(objects, count, sizeof(*objects), by_order_of_making);
	return count;
}

int objects_make(struct mpi_state *s)
{
	struct mpi_object **objects = calloc(s->count + 1ul, sizeof(*objects));
	struct saved_reader *readers = calloc(s->count + 1ul, sizeof(*readers));
	int failed = !objects || !readers;

	if (failed)
		agent_fail("no memory for %u MPI objects", s->count);
	memset(s->buckets, 0, sizeof(s->buckets));
	insert_by_handle(s, &s->world);
	insert_by_handle(s, &s->self);
	windows_forget(s);
	if (!failed)
		failed = mpi_functions_find() < 0;
	/* Errors are ours to report, until the program's handlers are set: handlers_make(). */
	if (!failed && s->initialised)
		failed = MPI_DO(Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN) ||
			 MPI_DO(Comm_set_errhandler, MPI_COMM_SELF, MPI_ERRORS_RETURN);
	if (!failed)
		failed = make_all(s, objects, readers, list_objects(s, objects)) < 0 ||
			 make_predefined(s, &s->world) < 0 || make_predefined(s, &s->self) < 0;
	free(objects);
	free(readers);
	return failed ? -1 : 0;
}
