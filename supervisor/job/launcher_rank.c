/*
 * launcher_rank.c - the variables that launchers set in the environment (PMI, Open MPI,
 * Slurm).
 */
#include "supervisor/job/launcher_rank.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/procfs.h"
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

/* The variable that tells the rank, where there are more than @more ranks; NULL: none does. */
static const char *rank_variable(int *rank, int *size, int more)
{
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		if (number_of(variables[i].rank, rank) && number_of(variables[i].size, size) &&
			*size > more && *rank < *size)
			return variables[i].rank;
	return NULL;
}

bool rank_of_launcher(int *rank, int *size)
{
	return rank_variable(rank, size, 1) != NULL;
}

/* ---- the launcher itself ---- */

/* Whether @pid was started with the variable; not if it is not ours to look at. */
static bool has_variable(pid_t pid, const char *name)
{
	cleanup_free char *path = xasprintf("/proc/%d/environ", pid);
	cleanup_free char *text = NULL;
	size_t length = 0, n = strlen(name);

	if (read_file(path, &text, &length, NULL) < 0)
		return false;
	for (size_t at = 0; at < length; at += strnlen(text + at, length - at) + 1)
		if (length - at > n && !strncmp(text + at, name, n) && text[at + n] == '=')
			return true;
	return false;
}

/* The ancestor @pid's parent; 0: it has ended. */
static pid_t parent_of(pid_t pid, struct proc_stat *st)
{
	return procfs_stat(pid, pid, st, NULL) < 0 ? 0 : (pid_t)st->field[STAT_PPID];
}

/* MPICH's has two on the node where it was started, mpiexec and a proxy below it. */
static bool has_launchers_name(const struct proc_stat *st)
{
	static const char *const names[] = {"mpiexec", "mpirun", "hydra_", "orte", "prte"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(st->comm, names[i], strlen(names[i])))
			return true;
	return false;
}

size_t launcher_processes(pid_t *pids, size_t room, pid_t *above)
{
	int rank, size;
	const char *name = rank_variable(&rank, &size, 0);
	struct proc_stat st;
	pid_t pid = getppid();
	size_t count = 0;

	*above = 0;
	if (!name)
		return 0;
	/* All below the launcher have the variable. */
	while (pid > 1 && has_variable(pid, name))
		pid = parent_of(pid, &st);
	while (pid > 1 && count < room) {
		*above = parent_of(pid, &st);
		if (count && !has_launchers_name(&st)) {
			*above = pid;
			break;
		}
		pids[count++] = pid;
		pid = *above;
	}
	return count;
}

/* ---- its nodes ---- */

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
