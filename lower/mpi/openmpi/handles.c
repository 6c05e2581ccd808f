/* Numbers for the addresses that Open MPI's handles are. */
#include "lower/mpi/openmpi/handles.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shared/raw.h"

#define LONGEST_NAME  63 /* that the library keeps */
#define BUCKETS       4096
#define MOST          (1u << 18) /* handles of a kind */
#define MOST_REQUESTS (1u << 22)

struct handle_kind handle_kinds[HANDLE_KINDS];
void *handle_predefined[MPI_PLACES];
void *handle_file_null;

static uint32_t buckets[HANDLE_KINDS][BUCKETS];
static uint32_t lock;
static uint32_t later; /* how many entries are */
static void *message_null, *message_no_proc;

/* ---- the table ---- */

static uint32_t most_of(int kind)
{
	return kind == MPI_REQUEST ? MOST_REQUESTS : MOST;
}

/* Memory that is used as it is needed. */
static int table_make(int kind)
{
	struct handle_kind *k = &handle_kinds[kind];
	void *at;

	if (k->entries)
		return 0;
	at = mmap(NULL, most_of(kind) * sizeof(*k->entries), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -1;
	k->entries = at;
	k->used = 1;
	return 0;
}

static uint32_t *bucket_of(int kind, const void *pointer)
{
	return &buckets[kind][((uintptr_t)pointer * 0x9e3779b97f4a7c15ull) >> 52];
}

static int number_of(int kind, uint32_t index)
{
	return (int)(0x80000000u | (uint32_t)kind << MPI_KIND_SHIFT | (index + HANDLE_FIRST));
}

static uint32_t index_of(int handle)
{
	return (handle & 0x3ffffff) - HANDLE_FIRST;
}

/* Under the lock. 0: there are too many. */
static uint32_t entry_take(int kind, void *pointer)
{
	struct handle_kind *k = &handle_kinds[kind];
	uint32_t index;

	if (table_make(kind) < 0)
		return 0;
	index = k->free;
	if (index)
		k->free = k->entries[index].next;
	else if (k->used == most_of(kind))
		return 0;
	else
		index = k->used++;
	k->entries[index] = (struct handle_entry){
		.pointer = pointer, .references = 1, .handle = number_of(kind, index)};
	return index;
}

static void entry_free(int kind, uint32_t index)
{
	struct handle_kind *k = &handle_kinds[kind];

	k->entries[index].pointer = NULL;
	k->entries[index].next = k->free;
	k->free = index;
}

static void entry_link(int kind, uint32_t index)
{
	struct handle_entry *e = &handle_kinds[kind].entries[index];
	uint32_t *bucket = bucket_of(kind, e->pointer);

	e->next = *bucket;
	*bucket = index;
}

static void entry_unlink(int kind, uint32_t index)
{
	struct handle_kind *k = &handle_kinds[kind];
	uint32_t *at = bucket_of(kind, k->entries[index].pointer);

	while (*at && *at != index)
		at = &k->entries[*at].next;
	if (*at)
		*at = k->entries[index].next;
}

static uint32_t entry_find(int kind, const void *pointer)
{
	const struct handle_kind *k = &handle_kinds[kind];
	uint32_t index = k->entries ? *bucket_of(kind, pointer) : 0;

	while (index && k->entries[index].pointer != pointer)
		index = k->entries[index].next;
	return index;
}

/* Communicators that the library has made meanwhile. */
static uint32_t entry_find_later(int kind, const void *pointer)
{
	struct handle_kind *k = &handle_kinds[kind];

	if (kind != MPI_COMM || !later)
		return 0;
	for (uint32_t i = 1; i < k->used; i++) {
		if (!k->entries[i].later || k->entries[i].pointer != pointer)
			continue;
		k->entries[i].later = 0;
		later--;
		entry_link(kind, i);
		return i;
	}
	return 0;
}

static uint32_t entry_of(int kind, const void *pointer)
{
	uint32_t index = entry_find(kind, pointer);

	return index ? index : entry_find_later(kind, pointer);
}

/* A predefined one stays, however often it is given back. */
static void drop_handle(int kind, int handle)
{
	struct handle_kind *k = &handle_kinds[kind];
	uint32_t index = index_of(handle);

	if (!is_made(handle) || index >= k->used || !k->entries[index].pointer ||
		--k->entries[index].references)
		return;
	if (k->entries[index].later)
		later--;
	else if (kind != MPI_REQUEST)
		entry_unlink(kind, index);
	for (int i = 0; i < HANDLE_KEPT; i++)
		free(k->entries[index].kept[i]);
	free(k->entries[index].name);
	entry_free(kind, index);
}

static int null_of(int kind)
{
	return kind << MPI_KIND_SHIFT;
}

int handle_given(int kind, void *pointer)
{
	struct handle_kind *k = &handle_kinds[kind];
	int handle = null_of(kind);
	uint32_t index;

	if (!pointer)
		return 0;
	raw_lock(&lock);
	index = entry_of(kind, pointer);
	if (index) {
		k->entries[index].references++;
	} else {
		index = entry_take(kind, pointer);
		if (index)
			entry_link(kind, index);
	}
	if (index)
		handle = k->entries[index].handle;
	raw_unlock(&lock);
	return handle;
}

int handle_seen(int kind, const void *pointer)
{
	int handle = null_of(kind);
	uint32_t index;

	raw_lock(&lock);
	index = entry_of(kind, pointer);
	if (index)
		handle = handle_kinds[kind].entries[index].handle;
	raw_unlock(&lock);
	return handle;
}

int handle_keep_name(int kind, const void *pointer, const char *name)
{
	char *kept = strlen(name) > LONGEST_NAME ? strdup(name) : NULL;
	uint32_t index;

	if (!kept && strlen(name) > LONGEST_NAME)
		return -1;
	raw_lock(&lock);
	index = entry_of(kind, pointer);
	if (index) {
		free(handle_kinds[kind].entries[index].name);
		handle_kinds[kind].entries[index].name = kept;
	}
	raw_unlock(&lock);
	if (!index)
		free(kept);
	return 0;
}

const char *handle_name(int kind, const void *pointer)
{
	const char *name = NULL;
	uint32_t index;

	raw_lock(&lock);
	index = entry_of(kind, pointer);
	if (index)
		name = handle_kinds[kind].entries[index].name;
	raw_unlock(&lock);
	return name;
}

int handle_seen_of_either(const void *pointer)
{
	int comm = handle_seen(MPI_COMM, pointer), win;

	if (comm != null_of(MPI_COMM))
		return comm;
	win = handle_seen(HANDLE_WIN, pointer);
	return win != null_of(HANDLE_WIN) ? win : comm;
}

int handle_changed(int kind, int was, void *now)
{
	if (now && now != handle_predefined[MPI_PLACE(null_of(kind))])
		return now == handle_pointer(was) ? was : handle_given(kind, now);
	raw_lock(&lock);
	drop_handle(kind, was);
	raw_unlock(&lock);
	return null_of(kind);
}

int handle_later(void ***place)
{
	struct handle_kind *k = &handle_kinds[MPI_COMM];
	uint32_t index;

	raw_lock(&lock);
	index = entry_take(MPI_COMM, handle_predefined[MPI_PLACE(null_of(MPI_COMM))]);
	if (index) {
		k->entries[index].later = 1;
		later++;
		*place = &k->entries[index].pointer;
	}
	raw_unlock(&lock);
	return index ? k->entries[index].handle : 0;
}

void handle_never(int handle)
{
	raw_lock(&lock);
	drop_handle(MPI_COMM, handle);
	raw_unlock(&lock);
}

/* ---- requests and messages ---- */

static int request_new(void *pointer)
{
	uint32_t index;

	raw_lock(&lock);
	index = entry_take(MPI_REQUEST, pointer);
	raw_unlock(&lock);
	return index ? number_of(MPI_REQUEST, index) : null_of(MPI_REQUEST);
}

static void request_dropped(int handle)
{
	raw_lock(&lock);
	drop_handle(MPI_REQUEST, handle);
	raw_unlock(&lock);
}

void request_hold(int handle)
{
	if (!is_made(handle))
		return;
	raw_lock(&lock);
	handle_kinds[MPI_REQUEST].entries[index_of(handle)].references++;
	raw_unlock(&lock);
}

void request_let_go(int handle)
{
	request_dropped(handle);
}

int request_given(void *pointer)
{
	return !pointer || pointer == handle_predefined[MPI_PLACE(null_of(MPI_REQUEST))]
		       ? null_of(MPI_REQUEST)
		       : request_new(pointer);
}

int request_changed(int was, void *now)
{
	if (now && now != handle_predefined[MPI_PLACE(null_of(MPI_REQUEST))])
		return now == handle_pointer(was) ? was : request_new(now);
	request_dropped(was);
	return null_of(MPI_REQUEST);
}

int request_keep(int handle, void *const *memory, uint32_t count)
{
	struct handle_entry *e = &handle_kinds[MPI_REQUEST].entries[index_of(handle)];

	if (!is_made(handle))
		return 0;
	for (uint32_t i = 0, k = 0; i < count; i++) {
		while (e->kept[k])
			k++;
		e->kept[k] = memory[i];
	}
	return 1;
}

/* The null one has the number of a request's. */
void *message_pointer(int handle)
{
	if (is_made(handle))
		return handle_pointer(handle);
	return handle == null_of(MPI_REQUEST) ? message_null : handle ? message_no_proc : NULL;
}

int message_given(void *pointer)
{
	enum { NO_PROCESS = 0x6c000000 };

	if (!pointer || pointer == message_null)
		return null_of(MPI_REQUEST);
	return pointer == message_no_proc ? NO_PROCESS : request_new(pointer);
}

int message_changed(int was, void *now)
{
	if (now && now != message_null)
		return now == message_pointer(was) ? was : message_given(now);
	request_dropped(was);
	return null_of(MPI_REQUEST);
}

/* ---- what is predefined ---- */

static int predefine_handle(const char *type, int handle, void *pointer)
{
	enum {
		ERRORS_ARE_FATAL = 0x54000000,
		ERRORS_ABORT = 0x54000003,
		ERRORS_THROW = 0x540000e0,
	};
	int kind = handle >> MPI_KIND_SHIFT & 0xf;
	uint32_t index;

	/* Open MPI 4 has one, and 5 the other. */
	if (!pointer && (handle == ERRORS_THROW || handle == ERRORS_ABORT)) {
		handle_predefined[MPI_PLACE(handle)] =
			handle_predefined[MPI_PLACE(ERRORS_ARE_FATAL)];
		return 0;
	}
	if (!pointer)
		return -1;
	if (!strcmp(type, "MPI_File")) {
		handle_file_null = pointer;
		return 0;
	}
	if (!strcmp(type, "MPI_Message")) {
		*((uint32_t)handle >> 30 ? &message_no_proc : &message_null) = pointer;
		return 0;
	}
	handle_predefined[MPI_PLACE(handle)] = pointer;
	index = entry_take(kind, pointer);
	if (!index)
		return -1;
	handle_kinds[kind].entries[index].handle = handle;
	entry_link(kind, index);
	return 0;
}

int handles_begin(void *(*symbol)(const char *name))
{
	int failed = 0;

#define OBJECT(type, name, size, handle, fortran)                                              \
	if (!failed && predefine_handle(#type, (int)(handle), symbol(#name)) < 0)              \
		failed = -1;
#include "mpi.openmpi.h"
#undef OBJECT
	return failed;
}
