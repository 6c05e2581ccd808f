/*
 * launcher_rank.c - the variables that launchers set in the environment (PMI, Open MPI,
 * Slurm).
 */
#include "supervisor/job/launcher_rank.h"

#include <stddef.h>
#include <stdio.h>
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

/* Slurm counts by node: "2(x3),1" of four nodes. */
static int number_on_node(const char *counts, int node)
{
	int count, times, used;

	while (counts && *counts) {
		used = 0;
		if (sscanf(counts, "%d(x%d)%n", &count, &times, &used) < 2 || !used) {
			times = 1;
			if (sscanf(counts, "%d%n", &count, &used) != 1)
				return 0;
		}
		if (node < times)
			return count;
		node -= times;
		counts += used;
		counts += *counts == ',';
	}
	return 0;
}

int rank_local_size(void)
{
	int size;

	if (number_of("MPI_LOCALNRANKS", &size) ||
		number_of("OMPI_COMM_WORLD_LOCAL_SIZE", &size))
		return size;
	if (number_of("SLURM_NODEID", &size))
		return number_on_node(getenv("SLURM_STEP_TASKS_PER_NODE"), size);
	return 0;
}
