/*
 * handles.h - Open MPI's handles are addresses; here they are numbers like MPICH's. An address has one number for as
 * long as the library counts a reference of the caller's to it, except that of a request, which has one each time it is
 * given out.
 */
#ifndef LOWER_MPI_OPENMPI_HANDLES_H
#define LOWER_MPI_OPENMPI_HANDLES_H

#include <stdint.h>

#include "shared/mpi/openmpi.h"
#include "shared/mpi/mpi_state.h"

enum {
	HANDLE_WIN = 8, /* a kind, beside enum mpi_kind */
	HANDLE_KINDS = 16,
	HANDLE_KEPT = 6,   /* arrays that go with a request: of datatypes, and of numbers */
	HANDLE_FIRST = 16, /* behind datatypes of pairs */
};

struct handle_entry {
	void *pointer; /* NULL: free */
	uint32_t next; /* of its bucket, or free one; 0: none */
	uint32_t references;
	int handle;
	int later; /* the library has not written the address yet, or it is not in its bucket */
	void *kept[HANDLE_KEPT]; /* memory that goes with a request */
	char *name;              /* that the library would cut; NULL: it has all of it */
};

struct handle_kind {
	struct handle_entry *entries; /* the first is not used */
	uint32_t used, free;
};

extern struct handle_kind handle_kinds[HANDLE_KINDS];
/* Addresses of what is predefined, by MPI_PLACE(). */
extern void *handle_predefined[MPI_PLACES];
extern void *handle_file_null;

/* The library's objects, once: 0, or -1 where one is missing. @symbol finds what it exports. */
int handles_begin(void *(*symbol)(const char *name));

static inline void *handle_pointer(int handle)
{
	const struct handle_kind *k = &handle_kinds[handle >> 26 & 0xf];
	uint32_t index = (handle & 0x3ffffff) - HANDLE_FIRST;

	if (!is_made(handle))
		return handle_predefined[MPI_PLACE(handle)];
	return index < k->used ? k->entries[index].pointer : NULL;
}

/* The number of @pointer, to which the caller has got one more reference; the same without one; and for @was, which the
 * library has changed to @now. */
int handle_given(int kind, void *pointer);
int handle_seen(int kind, const void *pointer);
int handle_seen_of_either(const void *pointer); /* a communicator's or a window's */
int handle_changed(int kind, int was, void *now);

/* The name that the program has given to an object, where the library cuts it (@kind as above): 0, or -1 without
 * memory. */
int handle_keep_name(int kind, const void *pointer, const char *name);
/* NULL: the library has the name. */
const char *handle_name(int kind, const void *pointer);

int request_given(void *pointer);
int request_changed(int was, void *now);
/* Besides the caller, who completes a generalised request has it, also when the caller has freed it. */
void request_hold(int handle);
void request_let_go(int handle);
/* @memory, @count pieces, is to be freed with the request. 0: it has none. */
int request_keep(int handle, void *const *memory, uint32_t count);

void *message_pointer(int handle);
int message_given(void *pointer);
int message_changed(int was, void *now);

/* The number of a communicator that the library makes later, when it writes its address to *@place; 0: there is no
 * memory. */
int handle_later(void ***place);
/* It does not make it after all. */
void handle_never(int handle);

#endif
