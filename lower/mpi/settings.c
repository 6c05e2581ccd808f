/* What is set of communicators, windows and datatypes: names, attributes, error handlers, hints. */
#include <stdlib.h>
#include <string.h>

#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/runtime.h"

/* The functions that get and set attributes, plain ones and those of a value that Fortran has set; by kind. */
struct attribute_functions {
	enum mpi_subject subject;
	int (*get)(int object, int key, void *value, int *flag);
	int (*set)(int object, int key, void *value);
	int (*get_typed)(int object, int key, void *value, int *flag, int type);
	int (*set_typed)(int object, int key, void *value, int type);
};

static struct attribute_functions functions_of(const struct mpi_object *o)
{
	switch (o->kind) {
	case MPI_COMM:
		return (struct attribute_functions){MPI_OF_COMM, mpi.Comm_get_attr,
			mpi.Comm_set_attr, mpi.get_typed, mpi.set_typed};
	case MPI_WINDOW:
		return (struct attribute_functions){MPI_OF_WINDOW, mpi.Win_get_attr,
			mpi.Win_set_attr, mpi.win_get_typed, mpi.win_set_typed};
	}
	return (struct attribute_functions){MPI_OF_DATATYPE, mpi.Type_get_attr,
		mpi.Type_set_attr, mpi.type_get_typed, mpi.type_set_typed};
}

static int get_attribute(
	const struct mpi_object *o, const struct mpi_object *key, void **value, int *flag)
{
	struct attribute_functions f = functions_of(o);

	return mpi_failed("getting an attribute",
		key->attribute_type
			? f.get_typed(o->real, key->real, value, flag, key->attribute_type)
			: f.get(o->real, key->real, value, flag));
}

static int set_attribute(const struct mpi_object *o, const struct mpi_object *key, void *value)
{
	struct attribute_functions f = functions_of(o);

	return mpi_failed("setting an attribute",
		key->attribute_type
			? f.set_typed(o->real, key->real, value, key->attribute_type)
			: f.set(o->real, key->real, value));
}

static int is_key_of(const struct mpi_object *key, const struct mpi_object *o)
{
	return key->real && key->kind == MPI_KEYVAL && key->attributes &&
	       key->subject == functions_of(o).subject;
}

static int save_attribute(struct mpi_object *o, const struct mpi_object *key)
{
	void *value = NULL;
	int flag;

	if (get_attribute(o, key, &value, &flag))
		return -1;
	return flag && (saved_put(&o->saved, key->handle) < 0 ||
			       saved_put(&o->saved, (int64_t)value) < 0)
		       ? -1
		       : 0;
}

/* The key whose attribute of MPI_COMM_SELF was set next after the one of @order; NULL: none. */
static const struct mpi_object *next_of_self(const struct mpi_state *s, uint64_t order)
{
	const struct mpi_object *next = NULL;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct mpi_object *key = s->objects[i];

		if (is_key_of(key, &s->self) && key->self_order > order &&
			(!next || key->self_order < next->self_order))
			next = key;
	}
	return next;
}

/* Each as its keyval and value; 0 ends them. In which order they were set the library does not tell, and it
 * matters for MPI_COMM_SELF only: MPI_Finalize deletes the last one first. */
static int save_attributes(struct mpi_state *s, struct mpi_object *o)
{
	const struct mpi_object *key = NULL;

	if (o == &s->self) {
		while ((key = next_of_self(s, key ? key->self_order : 0)))
			if (save_attribute(o, key) < 0)
				return -1;
		return saved_put(&o->saved, 0);
	}
	for (uint32_t i = 0; i < s->count; i++)
		if (is_key_of(s->objects[i], o) && save_attribute(o, s->objects[i]) < 0)
			return -1;
	return saved_put(&o->saved, 0);
}

static int make_attributes(struct mpi_state *s, struct mpi_object *o, struct saved_reader *r)
{
	int handle;

	while ((handle = saved_get(r))) {
		void *value = (void *)saved_get(r);

		if (set_attribute(o, s->objects[handle & MPI_HANDLES_MASK], value))
			return -1;
	}
	return 0;
}

static int save_handler(struct mpi_state *s, struct mpi_object *o)
{
	struct mpi_object *handler;
	int real;

	if (o->kind == MPI_WINDOW ? MPI_DO(Win_get_errhandler, o->real, &real)
				  : MPI_DO(Comm_get_errhandler, o->real, &real))
		return -1;
	handler = mpi_object_of_real(s, real);
	if (!handler)
		return saved_put(&o->saved, real);
	return MPI_DO(Errhandler_free, &real) ? -1 : saved_put(&o->saved, handler->handle);
}

static int save_hints(struct mpi_object *o)
{
	int info, r;

	if (MPI_DO(Comm_get_info, o->real, &info))
		return -1;
	r = info_save(&o->saved, info);
	return MPI_DO(Info_free, &info) ? -1 : r;
}

static int make_hints(struct mpi_object *o, struct saved_reader *r)
{
	int info;

	if (hints_make(r, &info) < 0)
		return -1;
	return MPI_DO(Comm_set_info, o->real, info) || MPI_DO(Info_free, &info) ? -1 : 0;
}

/* Error handlers of the program's, which are set when all has been made: until then errors are ours to report. */
static struct {
	struct mpi_object *of;
	int handler; /* the program's */
} * handlers;
static uint32_t handler_count;

int handler_keep(struct mpi_object *o, int handler)
{
	void *more = realloc(handlers, (handler_count + 1) * sizeof(*handlers));

	if (!more)
		return agent_fail("no memory for %u error handlers", handler_count + 1);
	handlers = more;
	handlers[handler_count].of = o;
	handlers[handler_count++].handler = handler;
	return 0;
}

int handlers_make(struct mpi_state *s)
{
	int failed = 0;

	for (uint32_t i = 0; i < handler_count && !failed; i++) {
		const struct mpi_object *o = handlers[i].of;
		int handler = mpi_real(s, handlers[i].handler);

		failed = o->kind == MPI_WINDOW ? MPI_DO(Win_set_errhandler, o->real, handler)
			 : o->kind == MPI_SESSION
				 ? MPI_DO(Session_set_errhandler, o->real, handler)
				 : MPI_DO(Comm_set_errhandler, o->real, handler);
	}
	free(handlers);
	handlers = NULL;
	handler_count = 0;
	return failed ? -1 : 0;
}

static int save_name(struct mpi_object *o)
{
	char name[MPI_MAX_NAME] = "";
	int length, failed = o->kind == MPI_COMM ? MPI_DO(Comm_get_name, o->real, name, &length)
			     : o->kind == MPI_WINDOW
				     ? MPI_DO(Win_get_name, o->real, name, &length)
				     : MPI_DO(Type_get_name, o->real, name, &length);

	return failed ? -1 : saved_put_text(&o->saved, name);
}

static int make_name(const struct mpi_object *o, const char *name)
{
	if (o->kind == MPI_COMM)
		return MPI_DO(Comm_set_name, o->real, name);
	if (o->kind == MPI_WINDOW)
		return MPI_DO(Win_set_name, o->real, name);
	return *name ? MPI_DO(Type_set_name, o->real, name) : 0;
}

int settings_save(struct mpi_state *s, struct mpi_object *o)
{
	if (save_name(o) < 0 || save_attributes(s, o) < 0)
		return -1;
	if (o->kind == MPI_DATATYPE)
		return 0;
	if (save_handler(s, o) < 0)
		return -1;
	return o->kind == MPI_COMM ? save_hints(o) : 0;
}

int settings_make(struct mpi_state *s, struct mpi_object *o, struct saved_reader *r)
{
	if (make_name(o, saved_get_text(r)) || make_attributes(s, o, r) < 0)
		return -1;
	if (o->kind == MPI_DATATYPE)
		return 0;
	if (handler_keep(o, (int)saved_get(r)) < 0)
		return -1;
	return o->kind == MPI_COMM ? make_hints(o, r) : 0;
}
