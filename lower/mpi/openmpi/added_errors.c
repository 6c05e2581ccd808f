/* Errors that the program has added to Open MPI's, by the numbers of MPICH's. */
#include "lower/mpi/openmpi/added_errors.h"

#include <stddef.h>

#include "lower/runtime.h"
#include "shared/mpi/openmpi_values.inc"
#include "shared/raw.h"

enum {
	PREDEFINED = 92, /* the last class of Open MPI's */
	LAST_CLASS = 0x7f,
	CODE_SHIFT = 8,
	CLASSES = 0xff,
	CODES = 0x3fffff, /* above the class */
	ADDED = 1 << 30,  /* what all classes that are added have set, and their codes */
};

static struct {
	int own, theirs;
} errors[4096];
static unsigned count; /* only grows */
static int classes, codes, last = ADDED_NONE;
static uint32_t lock;

/* MPICH has as many. */
int added_error_has_class(void)
{
	int has;

	raw_lock(&lock);
	has = classes < LAST_CLASS;
	raw_unlock(&lock);
	return has;
}

int added_error(int own, int class)
{
	int number = -1;

	raw_lock(&lock);
	if (count < sizeof(errors) / sizeof(*errors)) {
		number = class ? ++codes << CODE_SHIFT | class : ++classes | ADDED;
		errors[count].own = own;
		errors[count].theirs = number;
		if (number > last)
			last = number;
		__atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
	}
	raw_unlock(&lock);
	return number;
}

int added_error_own(int error)
{
	unsigned n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; error > LAST_CLASS && i < n; i++)
		if (errors[i].theirs == error)
			return errors[i].own;
	/* MPICH's of a known class, with details above it. */
	return error_to_own(
		error > LAST_CLASS && !(error & ADDED) ? error & LAST_CLASS : error);
}

int added_error_theirs(int error)
{
	unsigned n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; error > PREDEFINED && i < n; i++)
		if (errors[i].own == error)
			return errors[i].theirs;
	return error_to_theirs(error);
}

void openmpi_error_is(int given, int wanted)
{
	raw_lock(&lock);
	for (unsigned i = 0; i < count; i++)
		if (errors[i].theirs == given)
			errors[i].theirs = wanted;
	if (wanted >> CODE_SHIFT & CODES)
		codes = wanted >> CODE_SHIFT & CODES;
	else
		classes = wanted & CLASSES;
	if (wanted > last)
		last = wanted;
	raw_unlock(&lock);
}

int added_error_last(void)
{
	return last;
}
