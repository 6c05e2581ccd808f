/*
 * mpi_libraries.c - the option --mpi, and the environment that it stands for.
 */
#include "supervisor/split/mpi_libraries.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"
#include "shared/records.h"
#include "supervisor/split/stub_libraries.h"

#define AUDIT "libtrecr-audit.so"

int mpi_option(void *field, const char *value, struct err *e)
{
	static const char *const names[] = {"auto", "whole", "lower"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(value, names[i])) {
			*(enum mpi_use *)field = i;
			return 0;
		}
	return err_set(e, 0, "must be auto, whole or lower");
}

/* ---- a restart ---- */

#define FILES 2

/* The user's words for what a launcher's library may be, and the names of their files. */
static const struct {
	const char *word;
	unsigned abi;
	const char *files[FILES];
} libraries[] = {
	{"auto", MPI_ABI_NONE, {NULL}},
	{"same", MPI_ABI_NONE, {NULL}},
	{"mpich", MPI_ABI_MPICH, {"libmpich.so.12", "libmpi.so.12"}},
	{"openmpi", MPI_ABI_OPENMPI, {"libmpi.so.40"}},
};

int mpi_library_option(void *field, const char *value, struct err *e)
{
	*(const char **)field = value;
	if (strchr(value, '/'))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		if (!strcmp(value, libraries[i].word))
			return 0;
	return err_set(e, 0, "must be auto, same, mpich, openmpi or the path of a library");
}

unsigned mpi_abi_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		for (size_t k = 0; k < FILES; k++) {
			const char *name = libraries[i].files[k];

			if (name && !strncmp(file, name, strlen(name)))
				return libraries[i].abi;
		}
	return MPI_ABI_NONE;
}

static unsigned abi_of_word(const char *word)
{
	size_t i = 0;

	while (strcmp(libraries[i].word, word))
		i++;
	return libraries[i].abi;
}

static const char *const *files_of(unsigned abi)
{
	size_t i = 0;

	while (libraries[i].abi != abi)
		i++;
	return libraries[i].files;
}

/* Hydra is the launcher of MPICH, and of libraries derived from it. Slurm starts programs of either. */
static unsigned abi_of_launcher(void)
{
	bool openmpis = getenv("OMPI_COMM_WORLD_RANK");
	bool mpichs = getenv("PMI_RANK") && getenv("MPI_LOCALNRANKS");

	return openmpis == mpichs ? MPI_ABI_NONE : openmpis ? MPI_ABI_OPENMPI : MPI_ABI_MPICH;
}

static void add_name(char *names, size_t room, size_t *used, const char *name)
{
	size_t size = strlen(name) + 1;

	if (*used + size >= room)
		return;
	memcpy(names + *used, name, size);
	*used += size;
	names[*used] = 0;
}

/* Where the environment of the restart has it, as a module of a computing centre sets it. */
static void add_found(char *names, size_t room, size_t *used, const char *file)
{
	cleanup_free char *folders = xstrdup(getenv("LD_LIBRARY_PATH") ?: "");
	char *rest = folders, *folder;

	while ((folder = strsep(&rest, ":"))) {
		cleanup_free char *path = xasprintf("%s/%s", folder, file);

		if (*folder == '/' && !access(path, R_OK))
			add_name(names, room, used, path);
	}
}

unsigned mpi_library_choose(const char *option, unsigned former, char *names, size_t room)
{
	const char *const *files;
	size_t used = 0;
	unsigned abi;

	*names = 0;
	if (option && strchr(option, '/')) {
		add_name(names, room, &used, option);
		return MPI_ABI_NAMED;
	}
	abi = !option || !strcmp(option, "auto") ? abi_of_launcher() : abi_of_word(option);
	if (!abi || abi == former)
		return MPI_ABI_NONE;
	files = files_of(abi);
	for (size_t i = 0; i < FILES && files[i]; i++)
		add_found(names, room, &used, files[i]);
	for (size_t i = 0; i < FILES && files[i]; i++)
		add_name(names, room, &used, files[i]);
	return abi;
}

enum mpi_use mpi_choose(enum mpi_use use, bool is_rank)
{
	cleanup_free char *audit = NULL;

	if (use != MPI_AUTO)
		return use;
	/* Open MPI 1 has a libmpi.so.12, too, which is not of MPICH's ABI. */
	audit = is_rank && !getenv("OMPI_COMM_WORLD_RANK") ? stubs_find_audit(AUDIT) : NULL;
	return audit ? MPI_LOWER : MPI_WHOLE;
}

int mpi_prepare(enum mpi_use use, struct err *e)
{
	cleanup_free char *audit = NULL;

	if (use != MPI_LOWER)
		return 0;
	audit = stubs_find_audit(AUDIT);
	if (!audit)
		return err_set(e, 0, "cannot find " AUDIT ", which --mpi=lower needs");
	return stubs_load("mpi", audit, e);
}
