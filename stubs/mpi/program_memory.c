/*
 * Memory that the library would have for the program: what MPI_Alloc_mem gives is the program's own, in the upper
 * half.
 */
#include <limits.h>
#include <stdlib.h>

#include "shared/raw.h"
#include "stubs/mpi/handle_table.h"

#include "mpi.index.h"

extern STUB_HIDDEN int real_MPI_Info_get(
	MPI_Info info, const char *key, int room, char *value, int *flag);

enum {
	INFO_NULL = MPI_KIND_NULL(MPI_INFO),
	LEAST_ALIGNMENT = 64, /* a cache line */
	MOST_ALIGNMENT = 1 << 21,
};

/* A power of two that is no less than what the hint asks for. */
static size_t alignment_of(MPI_Info info)
{
	char value[32] = "";
	size_t alignment = LEAST_ALIGNMENT;
	int flag = 0;
	long asked;

	if (info == INFO_NULL ||
		real_MPI_Info_get(info, "mpi_minimum_memory_alignment", sizeof(value) - 1,
			value, &flag) ||
		!flag)
		return alignment;
	asked = strtol(value, NULL, 10);
	while ((long)alignment < asked && alignment < MOST_ALIGNMENT)
		alignment *= 2;
	return alignment;
}

BY_HAND(MPI_Alloc_mem, (MPI_Aint size, MPI_Info info, void *base));
int body_MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *base)
{
	void *memory;

	/* What is wrong the library reports, as the program has it handle errors. */
	if (size < 0 || !base || !mpi_state.initialised || mpi_state.finalized)
		return real_MPI_Alloc_mem(size, info, base);
	if (posix_memalign(&memory, alignment_of(info), size ? size : 1))
		return real_MPI_Alloc_mem(LONG_MIN, info, base);
	*(void **)base = memory;
	return 0;
}

BY_HAND(MPI_Free_mem, (void *base));
int body_MPI_Free_mem(void *base)
{
	if (!base)
		return real_MPI_Free_mem(base);
	free(base);
	return 0;
}
