/*
 * The lower half again, in a process that has come back from an image. The supervisor has one
 * thread of the upper half run this while all others are stopped
 * (supervisor/split/lower_restore.c). That thread is in the middle of something else, so
 * nothing here may use the libc.
 */
#include "bringup/start.h"
#include "shared/launcher_variables.h"
#include "shared/raw.h"
#include "shared/records.h"
#include "stubs/crossing/internal.h"

static int restart_failed(const char *what, const char *detail)
{
	char *to = RECORDS->failure, *end = to + sizeof(RECORDS->failure) - 1;

	for (; *what && to < end; what++)
		*to++ = *what;
	for (; *detail && to < end; detail++)
		*to++ = *detail;
	*to = 0;
	return -1;
}

static const struct records_launcher *given_launcher(void)
{
	return (const struct records_launcher *)RECORDS_LAUNCHER;
}

static int is_launchers(const struct crossing_library *l)
{
	return l->abi && given_launcher()->given && given_launcher()->mpi;
}

/* The first of the libraries that the launcher's is called by, or the program's own where that is of the kind. */
static int open_launchers(struct crossing_library *l, struct lower_table *table)
{
	const char *former = l->lower.soname;
	const char *name = given_launcher()->mpi == l->abi ? l->found : given_launcher()->names;

	for (int r = -1; *name && r < 0; name = name == l->found
							? given_launcher()->names
							: name + raw_length(name) + 1) {
		l->lower.soname = records_string(name);
		if (!l->lower.soname)
			return restart_failed("no memory for the name of the library", "");
		r = process_request(table, LOWER_LIBRARY, &l->lower, NULL);
		if (r >= 0)
			return r;
	}
	l->lower.soname = former;
	return restart_failed("cannot load the MPI library that the launcher or --mpi names "
			      "(--mpi=FILE names another): ",
		table->failure);
}

static int open_again(struct crossing_library *l, struct lower_table *table)
{
	uintptr_t start = l->lower.start;

	if (is_launchers(l))
		return open_launchers(l, table) < 0 ? -1 : 0;
	if (l->another_place && RECORDS->another_driver) {
		start = l->another_place(l);
		if (!start)
			return restart_failed("the program holds addresses of too many builds "
					      "of the GPU driver",
				"");
		l->lower.start = start;
	}
	if (process_request(table, LOWER_LIBRARY, &l->lower, NULL) < 0)
		return restart_failed("cannot load the library: ", table->failure);
	if (l->fixed && l->lower.start != start)
		return restart_failed("is not at the address that it had: ", l->lower.soname);
	return 0;
}

HIDDEN int restart_open_library(struct crossing_library *library, struct lower_table *table)
{
	return is_launchers(library)
		       ? open_launchers(library, table)
		       : process_request(table, LOWER_LIBRARY, &library->lower, NULL);
}

/* In the order they were opened in, which decides where they are placed. */
static int open_libraries(struct crossing_library *newest, struct lower_table *table)
{
	if (!newest)
		return 0;
	if (open_libraries(newest->next, table) < 0)
		return -1;
	return open_again(newest, table);
}

static int attach_threads(struct process *p)
{
	for (struct crossing_thread *t = p->threads; t; t = t->next)
		if (thread_attach(t, p->table) < 0)
			return restart_failed(
				"the lower half has no thread to serve the restart", "");
	return 0;
}

/* ---- the environment ---- */

static const char *next_given(const char *at)
{
	const char *end = given_launcher()->text + given_launcher()->size;

	at += raw_length(at) + 1;
	return at < end ? at : NULL;
}

static const char *first_given(void)
{
	return given_launcher()->size ? given_launcher()->text : NULL;
}

static int is_replaced(const char *variable)
{
	for (const char *g = first_given(); g; g = next_given(g))
		if (variable_is_same(variable, g))
			return 1;
	return variable_is_launchers(variable);
}

HIDDEN int restart_gave_variable(const char *variable)
{
	return given_launcher()->given && is_replaced(variable);
}

static size_t count_variables(char *const *old)
{
	size_t count = 0;

	while (*old++)
		count++;
	for (const char *g = first_given(); g; g = next_given(g))
		count++;
	return count;
}

/* The program's variables, with the new launcher's in the place of the old one's. */
static int take_given_environment(void)
{
	char *const *old = RECORDS->start.environment;
	char **new = records_alloc((count_variables(old) + 1) * sizeof(*new));
	size_t count = 0;

	if (!new)
		return restart_failed("no memory for the environment", "");
	for (; *old; old++)
		if (!is_replaced(*old))
			new[count++] = *old;
	for (const char *g = first_given(); g; g = next_given(g)) {
		new[count] = records_string(g);
		if (!new[count++])
			return restart_failed("no memory for the environment", "");
	}
	RECORDS->start.environment = new;
	return 0;
}

HIDDEN int restart_give_environment(void)
{
	return given_launcher()->given ? take_given_environment() : 0;
}

/* ---- */

static int restart_lower(void)
{
	struct process *p = process_get();
	const char *step = "";

	if (restart_give_environment() < 0)
		return -1;
	raw_zero(RECORDS_SAVED->fds, sizeof(RECORDS_SAVED->fds));
	if (process_start_lower(p, RECORDS_SAVED->fd_base, &step) < 0)
		return restart_failed("cannot bring the lower half up: ", step);
	if (open_libraries(process_libraries(), p->table) < 0 || attach_threads(p) < 0)
		return -1;
	for (struct crossing_library *l = process_libraries(); l; l = l->next)
		if (l->restarted && l->restarted(l) < 0)
			return -1;
	return 0;
}

HIDDEN void crossing_restart(void)
{
	RECORDS->result = restart_lower();
}
