/*
 * windows_shared.c - the first rank makes a file, whose name it tells the others, and removes the name when all have
 * mapped it. The library has a window over it as over any other memory (windows.c).
 */
#include "stubs/mpi/windows_shared.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "shared/raw.h"
#include "shared/shared_window.h"
#include "stubs/mpi/requests.h"

enum {
	INFO_NULL = MPI_KIND_NULL(MPI_INFO),
	TYPE_INT = 0x4c000405,
	MINIMUM = 0x58000002,
	MOST_BITS = 46, /* of the size of a file: there are no more addresses */
};

extern STUB_HIDDEN int real_MPI_Allreduce(
	const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
	real_MPI_Allgather(const void *in, int count, MPI_Datatype type, void *out, int each,
		MPI_Datatype received, MPI_Comm comm),
	real_MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm),
	real_MPI_Comm_rank(MPI_Comm comm, int *rank),
	real_MPI_Comm_size(MPI_Comm comm, int *size),
	real_MPI_Info_get(MPI_Info info, const char *key, int room, char *value, int *flag);

/* What a rank asks for. */
struct wish {
	int64_t bytes, unit;
	int32_t rank;  /* in MPI_COMM_WORLD */
	int32_t apart; /* its part is to begin on a page */
};

static int all_have(int here, MPI_Comm comm)
{
	int all = 0;

	return !real_MPI_Allreduce(&here, &all, 1, TYPE_INT, MINIMUM, comm) && all;
}

static int is_apart(MPI_Info info)
{
	char value[8] = "";
	int flag = 0;

	return info != INFO_NULL &&
	       !real_MPI_Info_get(
		       info, "alloc_shared_noncontig", sizeof(value) - 1, value, &flag) &&
	       flag && !strcmp(value, "true");
}

/* 0: something is wrong with what a rank asks for, which the library reports. */
static uint64_t place_parts(struct window_memory *m, const struct wish *wishes)
{
	uint64_t at = shared_window_head(m->size);

	for (int i = 0; i < m->size; i++) {
		if (wishes[i].bytes < 0 || wishes[i].bytes >> MOST_BITS ||
			wishes[i].unit <= 0 || at >> MOST_BITS)
			return 0;
		if (wishes[i].apart)
			at = shared_window_pages(at);
		m->parts[i] = (struct mpi_window_part){wishes[i].bytes, wishes[i].unit, at};
		at += wishes[i].bytes;
	}
	return shared_window_pages(at);
}

/* A page belongs to the rank whose byte is its first; those of the head to the first rank. */
static void write_head(const struct window_memory *m, const struct wish *wishes)
{
	struct shared_window *head = m->memory;

	for (int i = 0; i < m->size; i++)
		head->rank[i] = (struct shared_window_rank){
			i ? shared_window_pages(m->parts[i].offset) : 0, wishes[i].rank, 0};
	head->ranks = m->size;
	head->magic = SHARED_WINDOW_MAGIC;
}

/* What cannot be drawn makes a name that may be there already. */
static void make_name(char name[SHARED_WINDOW_NAME])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char random[SHARED_WINDOW_DIGITS / 2];
	char *to = name + strlen(SHARED_WINDOW_PREFIX);

	raw_copy(name, SHARED_WINDOW_PREFIX, strlen(SHARED_WINDOW_PREFIX));
	if (raw(SYS_getrandom, random, sizeof(random), 0) != sizeof(random))
		raw_zero(random, sizeof(random));
	for (unsigned i = 0; i < sizeof(random); i++) {
		*to++ = digits[random[i] >> 4];
		*to++ = digits[random[i] & 15];
	}
	*to = 0;
}

/* In memory: what is on a disk a supervisor saves by its name, which is gone. Pages that nobody touches take no memory.
 * Returns a descriptor, or a negative number. */
static int make_file(const char *name, uint64_t size)
{
	long fd = raw(SYS_open, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct statfs fs;

	if (raw_failed(fd))
		return -1;
	if (!raw_failed(raw(SYS_fstatfs, fd, &fs)) && fs.f_type == TMPFS_MAGIC &&
		!raw_failed(raw(SYS_ftruncate, fd, size)))
		return (int)fd;
	raw(SYS_close, fd);
	raw(SYS_unlink, name);
	return -1;
}

/* As the first rank says; an empty name: there is none. */
static int open_file(char name[SHARED_WINDOW_NAME], int rank, uint64_t size, MPI_Comm comm)
{
	int fd = -1;

	raw_zero(name, SHARED_WINDOW_NAME);
	if (!rank) {
		make_name(name);
		fd = make_file(name, size);
		if (fd < 0)
			raw_zero(name, SHARED_WINDOW_NAME);
	}
	if (real_MPI_Bcast(name, SHARED_WINDOW_NAME, BYTE, 0, comm) || !*name)
		return fd;
	return rank ? (int)raw(SYS_open, name, O_RDWR | O_CLOEXEC, 0) : fd;
}

static int map_file(struct window_memory *m, int rank, const struct wish *wishes, MPI_Comm comm)
{
	char name[SHARED_WINDOW_NAME];
	int fd = open_file(name, rank, m->mapped, comm), all;
	long at = fd < 0 ? -1
			 : raw(SYS_mmap, NULL, m->mapped, PROT_READ | PROT_WRITE, MAP_SHARED,
				   fd, 0);

	m->memory = raw_failed(at) ? NULL : (void *)at;
	if (m->memory && !rank)
		write_head(m, wishes);
	all = all_have(m->memory != NULL, comm);
	if (!rank && *name)
		raw(SYS_unlink, name);
	if (fd >= 0)
		raw(SYS_close, fd);
	if (!all && m->memory)
		raw(SYS_munmap, m->memory, m->mapped);
	return all;
}

int window_memory_share(
	struct window_memory *m, MPI_Comm comm, int64_t bytes, int64_t unit, MPI_Info info)
{
	struct wish own = {.bytes = bytes, .unit = unit, .apart = is_apart(info)}, *wishes;
	int rank = 0, size = 0, done = 0;

	real_MPI_Comm_rank(COMM_WORLD, &own.rank);
	real_MPI_Comm_rank(comm, &rank);
	real_MPI_Comm_size(comm, &size);
	*m = (struct window_memory){.size = size, .parts = calloc(size, sizeof(*m->parts))};
	wishes = calloc(size, sizeof(*wishes));
	if (all_have(m->parts && wishes && size <= (int)SHARED_WINDOW_RANKS, comm) &&
		!real_MPI_Allgather(&own, sizeof(own), BYTE, wishes, sizeof(own), BYTE, comm)) {
		m->mapped = place_parts(m, wishes);
		done = m->mapped && map_file(m, rank, wishes, comm);
	}
	free(wishes);
	if (!done) {
		free(m->parts);
		m->parts = NULL;
	}
	return done;
}

void window_memory_freed(void *memory)
{
	struct shared_window *head = memory;

	__atomic_store_n(&head->freed, 1, __ATOMIC_RELEASE);
}
