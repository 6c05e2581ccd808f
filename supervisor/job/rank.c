#include "supervisor/job/rank.h"

#include <stddef.h>
#include <stdlib.h>

#include "lib/util.h"

/* Slurm's batch script has SLURM_PROCID, too, but is no task of a step. */
static const struct {
	const char *rank, *size;
} variables[] = {
	{"PMI_RANK", "PMI_SIZE"},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

static bool number_of(const char *name, int *value)
{
	const char *text = getenv(name);
	char *end;
	long number;

	if (!text || !*text)
		return false;
	number = strtol(text, &end, 10);
	*value = number;
	return !*end && number >= 0 && number == *value;
}

bool rank_of_launcher(int *rank, int *size)
{
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		if (number_of(variables[i].rank, rank) && number_of(variables[i].size, size) &&
			*size > 1 && *rank < *size)
			return true;
	return false;
}
