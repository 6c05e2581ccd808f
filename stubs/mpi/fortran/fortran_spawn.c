/* Processes that begin later: what Fortran gives are arrays of strings, and C has pointers. */
#include <stdlib.h>

#include "stubs/mpi/fortran/fortran.h"

extern int PMPI_Comm_rank(void *comm, int *rank),
	PMPI_Comm_spawn(const char *command, char **arguments, int most, void *info, int root,
		void *comm, void **made, int *errors),
	PMPI_Comm_spawn_multiple(int count, char **commands, char ***arguments, const int *most,
		void *const *infos, int root, void *comm, void **made, int *errors);

/* ---- strings: a blank one is the last of a program's arguments ---- */

static void free_strings(char **strings)
{
	for (size_t i = 0; strings && strings[i]; i++)
		free(strings[i]);
	free(strings);
}

static char *copy_string(const char *text, int length)
{
	struct exchange_memory memory = {.kept = 1};

	return string_for_c(&memory, text, length);
}

/* @count strings, or, if that is negative, those in front of a blank one; @step characters from one to the next. With
 * NULL behind them; NULL: there is no memory. */
static char **copy_strings(const char *strings, int count, int length, size_t step)
{
	char **copies = calloc(1, sizeof(*copies)), **more;

	for (size_t i = 0; copies && (count < 0 || i < (size_t)count); i++) {
		char *copy = copy_string(strings + i * step, length);

		if (copy && !*copy && count < 0) {
			free(copy);
			break;
		}
		more = copy ? realloc(copies, (i + 2) * sizeof(*copies)) : NULL;
		if (!more) {
			free(copy);
			free_strings(copies);
			return NULL;
		}
		copies = more;
		copies[i] = copy;
		copies[i + 1] = NULL;
	}
	return copies;
}

static int *errors_or_null(int *errors)
{
	return errors == mpi_fortran_errcodes_ignore_ ? NULL : errors;
}

FORTRAN_MPI(comm_spawn, COMM_SPAWN, Comm_spawn,
	(const char *command, const char *arguments, const int *most, const int *info,
		const int *root, const int *comm, int *made, int *errors, int *ierror,
		int length_command, int length_argument))
{
	int has = (const void *)arguments != mpi_fortran_argv_null_;
	char *in_command = copy_string(command, length_command);
	char **in_arguments =
		has ? copy_strings(arguments, -1, length_argument, length_argument) : NULL;
	void *in_made = NULL;
	int gave = MPI_ERR_NO_MEM;

	if (in_command && (!has || in_arguments))
		gave = PMPI_Comm_spawn(in_command, in_arguments, *most, PMPI_Info_f2c(*info),
			*root, PMPI_Comm_f2c(*comm), &in_made, errors_or_null(errors));
	if (!gave)
		*made = PMPI_Comm_c2f(in_made);
	free(in_command);
	free_strings(in_arguments);
	GIVE(gave);
}

struct programs {
	char **commands, ***arguments;
	void **infos;
};

static void free_programs(struct programs *p, int count)
{
	for (int i = 0; p->arguments && i < count; i++)
		free_strings(p->arguments[i]);
	free(p->arguments);
	free_strings(p->commands);
	free(p->infos);
}

/* The first argument of each program stands in front of the second one of each. */
static int copy_programs(struct programs *p, int count, const char *commands, int length,
	const char *arguments, int length_argument, const int *infos)
{
	int has = (const void *)arguments != mpi_fortran_argvs_null_;

	p->commands = copy_strings(commands, count, length, length);
	p->infos = calloc(count + 1ul, sizeof(*p->infos));
	p->arguments = has ? calloc(count + 1ul, sizeof(*p->arguments)) : NULL;
	if (!p->commands || !p->infos || (has && !p->arguments))
		return -1;
	for (int i = 0; i < count; i++) {
		p->infos[i] = PMPI_Info_f2c(infos[i]);
		if (!has)
			continue;
		p->arguments[i] = copy_strings(arguments + (size_t)i * length_argument, -1,
			length_argument, (size_t)count * length_argument);
		if (!p->arguments[i])
			return -1;
	}
	return 0;
}

FORTRAN_MPI(comm_spawn_multiple, COMM_SPAWN_MULTIPLE, Comm_spawn_multiple,
	(const int *count, const char *commands, const char *arguments, const int *most,
		const int *infos, const int *root, const int *comm, int *made, int *errors,
		int *ierror, int length_command, int length_argument))
{
	struct programs p = {NULL, NULL, NULL};
	void *in_comm = PMPI_Comm_f2c(*comm), *in_made = NULL;
	int rank = -1, n, gave;

	/* At the root only is there anything else, the count included. */
	PMPI_Comm_rank(in_comm, &rank);
	n = rank == *root && *count > 0 ? *count : 0;
	gave = copy_programs(
		       &p, n, commands, length_command, arguments, length_argument, infos) < 0
		       ? MPI_ERR_NO_MEM
		       : PMPI_Comm_spawn_multiple(n, p.commands, p.arguments, most, p.infos,
				 *root, in_comm, &in_made, errors_or_null(errors));
	if (!gave)
		*made = PMPI_Comm_c2f(in_made);
	free_programs(&p, n);
	GIVE(gave);
}
