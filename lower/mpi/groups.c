/* Groups, as ranks of MPI_COMM_WORLD; and info objects. */
#include <stdlib.h>
#include <string.h>

#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/runtime.h"

static int put_ranks(struct mpi_saved_values *v, int real, int size, int world)
{
	int *numbers = calloc(2 * size + 1, sizeof(*numbers)), r = -1;

	if (!numbers)
		return agent_fail("no memory for %d ranks", size);
	for (int i = 0; i < size; i++)
		numbers[i] = i;
	if (!MPI_DO(Group_translate_ranks, real, size, numbers, world, numbers + size))
		r = 0;
	for (int i = 0; i < size && !r; i++)
		if (numbers[size + i] < 0)
			r = agent_fail("a group has processes that are not in MPI_COMM_WORLD");
	if (!r)
		r = saved_put_ints(v, numbers + size, size);
	free(numbers);
	return r;
}

int group_save(struct mpi_saved_values *v, int real)
{
	int size, world, r;

	if (MPI_DO(Group_size, real, &size) || saved_put(v, size) < 0 ||
		MPI_DO(Comm_group, MPI_COMM_WORLD, &world))
		return -1;
	r = put_ranks(v, real, size, world);
	return MPI_DO(Group_free, &world) ? -1 : r;
}

int group_make(struct saved_reader *r, int *real)
{
	int size = saved_get(r), world, failed;
	int *ranks = saved_get_ints(r, size);

	if (!ranks)
		return -1;
	failed = MPI_DO(Comm_group, MPI_COMM_WORLD, &world) ||
		 MPI_DO(Group_incl, world, size, ranks, real) || MPI_DO(Group_free, &world);
	free(ranks);
	return failed ? -1 : 0;
}

static int put_key(struct mpi_saved_values *v, int real, int n)
{
	char key[MPI_MAX_NAME], *value;
	int length, flag, r;

	if (MPI_DO(Info_get_nthkey, real, n, key) ||
		MPI_DO(Info_get_valuelen, real, key, &length, &flag))
		return -1;
	value = calloc(1, length + 1);
	if (!value)
		return agent_fail("no memory for the value of %s", key);
	r = MPI_DO(Info_get, real, key, length, value, &flag);
	if (!r)
		r = saved_put_text(v, key) < 0 ? -1 : saved_put_text(v, value);
	free(value);
	return r;
}

int info_save(struct mpi_saved_values *v, int real)
{
	int count;

	if (MPI_DO(Info_get_nkeys, real, &count) || saved_put(v, count) < 0)
		return -1;
	for (int i = 0; i < count; i++)
		if (put_key(v, real, i) < 0)
			return -1;
	return 0;
}

/* Asked to, it would tell the program's error handler. */
static int takes_info(const char *key, const char *value)
{
	enum { KEY = 36, VALUE = 256 }; /* Open MPI's MPI_MAX_INFO_KEY, MPI_MAX_INFO_VAL */

	return !openmpi_is_used() || (strlen(key) <= KEY && *value && strlen(value) <= VALUE);
}

static int make_info(struct saved_reader *r, int *real, int are_hints)
{
	int count = saved_get(r);

	if (MPI_DO(Info_create, real))
		return -1;
	for (int i = 0; i < count; i++) {
		const char *key = saved_get_text(r), *value = saved_get_text(r);

		if (are_hints && !takes_info(key, value))
			continue;
		if (!takes_info(key, value) || mpi.Info_set(*real, key, value))
			return agent_fail("the MPI library does not take the key %s of an info "
					  "object, or its value of %zu bytes",
				key, strlen(value));
	}
	return 0;
}

int info_make(struct saved_reader *r, int *real)
{
	return make_info(r, real, 0);
}

int hints_make(struct saved_reader *r, int *real)
{
	return make_info(r, real, 1);
}
