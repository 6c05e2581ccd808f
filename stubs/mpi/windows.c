/*
 * windows.c - windows are made over memory of the upper half, each with words by which ranks tell each other of their
 * epochs (window_control.h). It is in a passive epoch from now on, which needs no locks of the library's.
 */
#include "stubs/mpi/windows.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "shared/raw.h"
#include "shared/address_windows.h"
#include "stubs/crossing/crossing.h"
#include "stubs/mpi/collective_gate.h"
#include "stubs/mpi/requests.h"
#include "stubs/mpi/window_control.h"
#include "stubs/mpi/windows_shared.h"

#include "mpi.index.h"

enum {
	INFO_NULL = MPI_KIND_NULL(MPI_INFO),
	MODE_NOCHECK = 1024,
	FLAVOR_CREATE = 1,
	FLAVOR_ALLOCATE = 2,
	FLAVOR_DYNAMIC = 3,
	FLAVOR_SHARED = 4,
	MODEL_UNIFIED = 2,
	WIN_MODEL = 0x66000009,
};

extern STUB_HIDDEN int real_MPI_Win_call_errhandler(MPI_Win win, int error),
	real_MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
		MPI_Win *win),
	real_MPI_Win_free(MPI_Win *win),
	real_MPI_Win_get_attr(MPI_Win win, MPI_Keyval key, void **value, int *flag),
	real_MPI_Win_lock_all(int assert, MPI_Win win), real_MPI_Win_unlock_all(MPI_Win win),
	real_MPI_Comm_rank(MPI_Comm comm, int *rank),
	real_MPI_Comm_size(MPI_Comm comm, int *size);

STUB_HIDDEN int window_failed(MPI_Win win, int error)
{
	real_MPI_Win_call_errhandler(win, error);
	return error;
}

/* ---- records ---- */

static struct mpi_window *free_windows;
static struct mpi_region *free_regions;
static uint32_t free_lock;

STUB_HIDDEN void windows_reset(void)
{
	free_windows = NULL;
	free_regions = NULL;
	free_lock = 0;
	window_controls_reset();
}

static uint64_t round_up(uint64_t size)
{
	return (size + 63) & ~63ul;
}

/* All of a window in one piece, for @size ranks. */
static struct mpi_window *allocate_window(uint32_t size)
{
	uint64_t head = round_up(sizeof(struct mpi_window));
	uint64_t targets = round_up(size * sizeof(struct mpi_window_target));
	uint64_t ranks = round_up(size * sizeof(int32_t));
	uint64_t parts = round_up(size * sizeof(struct mpi_window_part));
	char *at = records_alloc(head + targets + 2 * ranks + parts);
	struct mpi_window *w = (struct mpi_window *)at;

	if (!w)
		return NULL;
	w->room = size;
	w->targets = (struct mpi_window_target *)(at + head);
	w->started = (int32_t *)(at + head + targets);
	w->posted = (int32_t *)(at + head + targets + ranks);
	w->parts = (struct mpi_window_part *)(at + head + targets + 2 * ranks);
	return w;
}

static struct mpi_window *take_free(uint32_t size)
{
	struct mpi_window **at = &free_windows, *w;

	raw_lock(&free_lock);
	while (*at && (*at)->room < size)
		at = &(*at)->next;
	w = *at;
	if (w)
		*at = w->next;
	raw_unlock(&free_lock);
	return w;
}

static struct mpi_window *new_window(int rank, int size)
{
	struct mpi_window *w = take_free(size), old;

	if (!w)
		w = allocate_window(size);
	if (!w)
		return NULL;
	old = *w;
	*w = (struct mpi_window){.room = old.room,
		.targets = old.targets,
		.started = old.started,
		.posted = old.posted,
		.parts = old.parts,
		.rank = rank,
		.size = size};
	raw_zero(w->targets, size * sizeof(*w->targets));
	return w;
}

static void drop_window(struct mpi_window *w)
{
	struct mpi_region *r;

	if (w->memory)
		raw(SYS_munmap, w->memory, w->mapped);
	raw_lock(&free_lock);
	while ((r = w->regions)) {
		w->regions = r->next;
		r->next = free_regions;
		free_regions = r;
	}
	w->next = free_windows;
	free_windows = w;
	raw_unlock(&free_lock);
}

/* ---- making one ---- */

/* What a window is to be, whose real one is made already. */
struct making {
	unsigned index; /* the function that the program has called */
	int32_t real;
	MPI_Comm comm;
	int32_t flavor;
	void *base, *memory;
	int64_t bytes, unit;
	uint64_t mapped;
};

static int model_of(int32_t real)
{
	int *model = NULL, flag = 0;

	return !real_MPI_Win_get_attr(real, WIN_MODEL, (void **)&model, &flag) && flag
		       ? *model
		       : MODEL_UNIFIED;
}

static void describe_window(struct mpi_window *w, const struct making *m)
{
	w->flavor = m->flavor;
	w->model = model_of(m->real);
	w->base = m->base;
	w->bytes = m->bytes;
	w->unit = m->unit;
	w->large_unit = m->unit;
	w->memory = m->memory;
	w->mapped = m->mapped;
}

/* The library's own, of whose epochs and memory nothing is known. */
static int leave_window(unsigned index, int32_t real, MPI_Win *win)
{
	struct mpi_object *o = object_new(MPI_WINDOW, real);

	mpi_state.called[index] = MPI_CALLED_UNSAVED;
	*win = o ? o->handle : real;
	return 0;
}

/* Which windows are ours, in all ranks alike. Ranks that have no stub, as those of MPI_Comm_spawn, know the library's
 * own epochs only; a checkpoint is refused for their communicator. */
static int is_ours(const struct making *m)
{
	return !mpi_state.lower_is_openmpi && m->comm != MPI_KIND_NULL(MPI_COMM) &&
	       gate_is_of_world(m->comm);
}

/* In all ranks alike: one that fails here leaves the others waiting, as the library itself does. */
static int make_ours(const struct making *m, MPI_Win *win)
{
	struct mpi_object *o = object_new(MPI_WINDOW, m->real);
	struct mpi_window *w;
	uint64_t number = 0;
	int rank = 0, size = 0, r;

	*win = o ? o->handle : m->real;
	gate_begin_windows();
	real_MPI_Comm_rank(m->comm, &rank);
	real_MPI_Comm_size(m->comm, &size);
	w = o ? new_window(rank, size) : NULL;
	if (!w)
		return MPI_ERR_INTERN;
	describe_window(w, m);
	r = window_control_join(w, m->comm, &number);
	if (!r)
		r = real_MPI_Win_lock_all(MODE_NOCHECK, m->real);
	if (r)
		return r;
	o->window = w;
	gate_number_window(o, number, size);
	return 0;
}

static int make_window(const struct making *m, MPI_Win *win)
{
	return is_ours(m) ? make_ours(m, win) : leave_window(m->index, m->real, win);
}

BY_HAND(MPI_Win_create,
	(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win));
int body_MPI_Win_create(
	void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
	struct making m = {.index = INDEX_MPI_Win_create,
		.comm = comm,
		.flavor = FLAVOR_CREATE,
		.base = base,
		.bytes = size,
		.unit = unit};
	int r = real_MPI_Win_create(base, size, unit, info, comm, &m.real);

	r = result_of(r, m.real != 0);
	return r ? r : make_window(&m, win);
}

BY_HAND(MPI_Win_create_c,
	(void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win *win));
int body_MPI_Win_create_c(
	void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
	struct making m = {.index = INDEX_MPI_Win_create_c,
		.comm = comm,
		.flavor = FLAVOR_CREATE,
		.base = base,
		.bytes = size,
		.unit = unit};
	int r = real_MPI_Win_create_c(base, size, unit, info, comm, &m.real);

	r = result_of(r, m.real != 0);
	return r ? r : make_window(&m, win);
}

BY_HAND(MPI_Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win));
int body_MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
	struct making m = {.index = INDEX_MPI_Win_create_dynamic,
		.comm = comm,
		.flavor = FLAVOR_DYNAMIC,
		.unit = 1};
	int r = real_MPI_Win_create_dynamic(info, comm, &m.real);

	r = result_of(r, m.real != 0);
	return r ? r : make_window(&m, win);
}

/* ---- memory that comes with the window ---- */

/* What is wrong the library reports: such a size it cannot have either. */
static int map_memory(struct making *m)
{
	long at;

	if (m->bytes < 0)
		return 0;
	m->mapped = (m->bytes + 4096ul) & ~4095ul;
	at = raw(SYS_mmap, NULL, m->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	if (raw_failed(at))
		return -1;
	m->base = m->memory = (void *)at;
	return 0;
}

/* @unit as the library takes it for large counts only if it has to. */
static int allocate_and_make(struct making *m, MPI_Info info, void *base, MPI_Win *win)
{
	int r;

	if (map_memory(m))
		m->bytes = LONG_MIN;
	r = m->unit > INT_MAX
		    ? real_MPI_Win_create_c(m->base, m->bytes, m->unit, info, m->comm, &m->real)
		    : real_MPI_Win_create(
			      m->base, m->bytes, (int)m->unit, info, m->comm, &m->real);
	r = result_of(r, m->real != 0);
	if (!r)
		r = make_ours(m, win);
	if (!r)
		*(void **)base = m->base;
	else if (m->memory)
		raw(SYS_munmap, m->memory, m->mapped);
	return r;
}

BY_HAND(MPI_Win_allocate,
	(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win));
int body_MPI_Win_allocate(
	MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win)
{
	struct making m = {.index = INDEX_MPI_Win_allocate,
		.comm = comm,
		.flavor = FLAVOR_ALLOCATE,
		.bytes = size,
		.unit = unit};
	int r;

	if (is_ours(&m))
		return allocate_and_make(&m, info, base, win);
	r = real_MPI_Win_allocate(size, unit, info, comm, base, &m.real);
	r = result_of(r, m.real != 0);
	return r ? r : leave_window(m.index, m.real, win);
}

BY_HAND(MPI_Win_allocate_c,
	(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win));
int body_MPI_Win_allocate_c(
	MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win)
{
	struct making m = {.index = INDEX_MPI_Win_allocate_c,
		.comm = comm,
		.flavor = FLAVOR_ALLOCATE,
		.bytes = size,
		.unit = unit};
	int r;

	if (is_ours(&m))
		return allocate_and_make(&m, info, base, win);
	r = real_MPI_Win_allocate_c(size, unit, info, comm, base, &m.real);
	r = result_of(r, m.real != 0);
	return r ? r : leave_window(m.index, m.real, win);
}

/* ---- memory that ranks share ---- */

/* The window's own part: of none, its address is NULL, as the library's would be. */
static void *part_at(const struct window_memory *memory, int rank)
{
	const struct mpi_window_part *part = &memory->parts[rank];

	return part->bytes ? (char *)memory->memory + part->offset : NULL;
}

static int make_over_part(
	struct making *m, const struct window_memory *memory, MPI_Info info, MPI_Win *win)
{
	struct mpi_window *w;
	int rank = 0, r;

	real_MPI_Comm_rank(m->comm, &rank);
	m->base = part_at(memory, rank);
	m->memory = memory->memory;
	m->mapped = memory->mapped;
	r = m->unit > INT_MAX
		    ? real_MPI_Win_create_c(m->base, m->bytes, m->unit, info, m->comm, &m->real)
		    : real_MPI_Win_create(
			      m->base, m->bytes, (int)m->unit, info, m->comm, &m->real);
	if (!r)
		r = make_ours(m, win);
	w = r ? NULL : window_of(*win);
	if (!w)
		return r;
	raw_copy(w->parts, memory->parts, memory->size * sizeof(*w->parts));
	w->shared = 1;
	return 0;
}

/* 1: it has been made, or not, as *result says; 0: it is the library's to make. */
static int share_and_make(
	struct making *m, MPI_Info info, void *base, MPI_Win *win, int *result)
{
	struct window_memory memory;

	if (!window_memory_share(&memory, m->comm, m->bytes, m->unit, info))
		return 0;
	*result = make_over_part(m, &memory, info, win);
	free(memory.parts);
	if (*result)
		raw(SYS_munmap, memory.memory, memory.mapped);
	else
		*(void **)base = m->base;
	return 1;
}

/* The same. */
static int allocate_ours(struct making *m, MPI_Info info, void *base, MPI_Win *win, int *result)
{
	int size = 0;

	if (!is_ours(m) || real_MPI_Comm_size(m->comm, &size))
		return 0;
	if (size != 1)
		return share_and_make(m, info, base, win, result);
	*result = allocate_and_make(m, info, base, win);
	return 1;
}

BY_HAND(MPI_Win_allocate_shared,
	(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win));
int body_MPI_Win_allocate_shared(
	MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win)
{
	struct making m = {.index = INDEX_MPI_Win_allocate_shared,
		.comm = comm,
		.flavor = FLAVOR_SHARED,
		.bytes = size,
		.unit = unit};
	int r;

	if (allocate_ours(&m, info, base, win, &r))
		return r;
	r = real_MPI_Win_allocate_shared(size, unit, info, comm, base, &m.real);
	return r ? r : leave_window(INDEX_MPI_Win_allocate_shared, m.real, win);
}

BY_HAND(MPI_Win_allocate_shared_c,
	(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win));
int body_MPI_Win_allocate_shared_c(
	MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win)
{
	struct making m = {.index = INDEX_MPI_Win_allocate_shared_c,
		.comm = comm,
		.flavor = FLAVOR_SHARED,
		.bytes = size,
		.unit = unit};
	int r;

	if (allocate_ours(&m, info, base, win, &r))
		return r;
	r = real_MPI_Win_allocate_shared_c(size, unit, info, comm, base, &m.real);
	return r ? r : leave_window(INDEX_MPI_Win_allocate_shared_c, m.real, win);
}

/* Fill @part, and say where it is, of a window that the real library does not know to be of that flavor. 0: the
 * library is to answer. */
static int find_part(
	const struct mpi_window *w, int rank, struct mpi_window_part *part, void *base)
{
	if (!w || w->flavor != FLAVOR_SHARED ||
		(rank != MPI_PROC_NULL && (rank < 0 || rank >= w->size)))
		return 0;
	if (!w->shared) {
		*part = (struct mpi_window_part){w->bytes, w->large_unit, 0};
		*(void **)base = w->base;
		return 1;
	}
	/* The first that is not empty. */
	if (rank == MPI_PROC_NULL)
		for (rank = 0; rank < w->size - 1 && !w->parts[rank].bytes;)
			rank++;
	*part = w->parts[rank];
	*(void **)base = part->bytes ? (char *)w->memory + part->offset : NULL;
	return 1;
}

BY_HAND(MPI_Win_shared_query, (MPI_Win win, int rank, MPI_Aint *size, int *unit, void *base));
int body_MPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *unit, void *base)
{
	struct mpi_window_part part;

	if (!find_part(window_of(win), rank, &part, base))
		return real_MPI_Win_shared_query(win, rank, size, unit, base);
	*size = part.bytes;
	*unit = (int)part.unit;
	return 0;
}

BY_HAND(MPI_Win_shared_query_c,
	(MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *unit, void *base));
int body_MPI_Win_shared_query_c(
	MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *unit, void *base)
{
	struct mpi_window_part part;

	if (!find_part(window_of(win), rank, &part, base))
		return real_MPI_Win_shared_query_c(win, rank, size, unit, base);
	*size = part.bytes;
	*unit = part.unit;
	return 0;
}

/* ---- the end of one ---- */

/* The library calls what deletes attributes, for the program's handle. If that fails, the window is as it was. */
static int free_window(struct mpi_object *o, struct mpi_window *w)
{
	int32_t real = o->real;
	int r = real_MPI_Win_unlock_all(real);

	if (r)
		return r;
	r = real_MPI_Win_free(&real);
	if (r) {
		(void)real_MPI_Win_lock_all(MODE_NOCHECK, o->real);
		return r;
	}
	if (w->shared)
		window_memory_freed(w->memory);
	window_control_leave(w);
	object_drop(o);
	drop_window(w);
	return 0;
}

BY_HAND(MPI_Win_free, (MPI_Win * win));
int body_MPI_Win_free(MPI_Win *win)
{
	struct mpi_object *o = object_of(*win);
	struct mpi_window *w = window_of(*win);
	int32_t real = o ? o->real : *win;
	int r;

	if (w) {
		if (w->access > MPI_FENCE_ACCESS || w->exposed)
			return window_failed(*win, MPI_ERR_RMA_SYNC);
		r = free_window(o, w);
	} else {
		r = real_MPI_Win_free(&real);
		if (!r && o)
			object_drop(o);
	}
	if (!r)
		*win = MPI_KIND_NULL(MPI_WINDOW);
	return r;
}

/* ---- memory of dynamic windows ---- */

static struct mpi_region *new_region(void)
{
	struct mpi_region *r;

	raw_lock(&free_lock);
	r = free_regions;
	if (r)
		free_regions = r->next;
	raw_unlock(&free_lock);
	return r ? r : records_alloc(sizeof(*r));
}

BY_HAND(MPI_Win_attach, (MPI_Win win, void *base, MPI_Aint size));
int body_MPI_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
	struct mpi_window *w = window_of(win);
	struct mpi_region *region = w ? new_region() : NULL;
	int r;

	if (w && !region)
		return window_failed(win, MPI_ERR_INTERN);
	r = real_MPI_Win_attach(win, base, size);
	if (!region)
		return r;
	raw_lock(&free_lock);
	*region = (struct mpi_region){r ? free_regions : w->regions, base, size};
	*(r ? &free_regions : &w->regions) = region;
	raw_unlock(&free_lock);
	return r;
}

BY_HAND(MPI_Win_detach, (MPI_Win win, const void *base));
int body_MPI_Win_detach(MPI_Win win, const void *base)
{
	struct mpi_window *w = window_of(win);
	int r = real_MPI_Win_detach(win, base);
	struct mpi_region **at, *region;

	if (r || !w)
		return r;
	raw_lock(&free_lock);
	for (at = &w->regions; *at && (*at)->base != base;)
		at = &(*at)->next;
	region = *at;
	if (region) {
		*at = region->next;
		region->next = free_regions;
		free_regions = region;
	}
	raw_unlock(&free_lock);
	return 0;
}

/* ---- what a window says of itself ---- */

enum own_attribute { /* of the keyvals of MPI_WIN_BASE and what follows: each of C and of Fortran */
	WIN_BASE,
	WIN_SIZE,
	WIN_DISP_UNIT,
	WIN_CREATE_FLAVOR,
	WIN_MODELS,
};

#define FIRST_OF_WINDOW 0x66000001

static int attribute_of(MPI_Keyval key)
{
	unsigned which = (unsigned)key - FIRST_OF_WINDOW;

	return which / 2 <= WIN_MODELS ? (int)which / 2 : -1;
}

static void *attribute_at(struct mpi_window *w, enum own_attribute which)
{
	switch (which) {
	case WIN_BASE:
		return w->base;
	case WIN_SIZE:
		return &w->bytes;
	case WIN_DISP_UNIT:
		return &w->unit;
	case WIN_CREATE_FLAVOR:
		return &w->flavor;
	case WIN_MODELS:
		break;
	}
	return &w->model;
}

static int64_t attribute_value(struct mpi_window *w, enum own_attribute which)
{
	void *at = attribute_at(w, which);

	if (which == WIN_BASE)
		return (int64_t)at;
	return which == WIN_SIZE ? *(int64_t *)at : *(int32_t *)at;
}

BY_HAND(MPI_Win_get_attr, (MPI_Win win, MPI_Keyval key, void **value, int *flag));
int body_MPI_Win_get_attr(MPI_Win win, MPI_Keyval key, void **value, int *flag)
{
	struct mpi_window *w = window_of(win);
	int which = attribute_of(key);

	if (!w || which < 0)
		return real_MPI_Win_get_attr(win, key, value, flag);
	*value = attribute_at(w, which);
	*flag = 1;
	return 0;
}

/* For Fortran: a value is a word itself. */
BY_HAND(MPII_Win_get_attr, (MPI_Win win, MPI_Keyval key, void **value, int *flag, int type));
int body_MPII_Win_get_attr(MPI_Win win, MPI_Keyval key, void **value, int *flag, int type)
{
	struct mpi_window *w = window_of(win);
	int which = attribute_of(key);

	if (!w || which < 0)
		return real_MPII_Win_get_attr(win, key, value, flag, type);
	*value = type ? (void *)attribute_value(w, which) : attribute_at(w, which);
	*flag = 1;
	return 0;
}
