/*
 * window_control.c - the first rank of a group knows which places are taken, and tells the others where a window is to
 * be, when it is made, and whether that was the last one, when one is freed. So threads may make and free windows of the
 * same ranks at the same time, in another order in each rank.
 *
 * A library has room for some two thousand windows and communicators. Places double with each struct of a group, so even
 * thousands of windows need few of them, and few windows little memory.
 */
#include "stubs/mpi/window_control.h"

#include "shared/raw.h"
#include "stubs/mpi/collective_gate.h"
#include "stubs/mpi/requests.h"

enum {
	INFO_NULL = MPI_KIND_NULL(MPI_INFO),
	MODE_NOCHECK = 1024,
	CONGRUENT = 1, /* of MPI_Comm_compare: the same ranks in the same order; or less */
	UNEQUAL = 3,
};

extern STUB_HIDDEN int real_MPI_Bcast(
	void *data, int count, MPI_Datatype type, int root, MPI_Comm comm),
	real_MPI_Comm_compare(MPI_Comm a, MPI_Comm b, int *result),
	real_MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made),
	real_MPI_Comm_free(MPI_Comm *comm),
	real_MPI_Comm_group(MPI_Comm comm, MPI_Group *group),
	real_MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler),
	real_MPI_Group_free(MPI_Group *group),
	real_MPI_Recv(void *to, int count, MPI_Datatype type, int source, int tag,
		MPI_Comm comm, int32_t *status),
	real_MPI_Send(const void *from, int count, MPI_Datatype type, int target, int tag,
		MPI_Comm comm),
	real_MPI_Sendrecv(const void *from, int count, MPI_Datatype type, int target, int tag,
		void *to, int room, MPI_Datatype received, int source, int expected,
		MPI_Comm comm, int32_t *status),
	real_MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
		MPI_Win *win),
	real_MPI_Win_flush_all(MPI_Win win), real_MPI_Win_free(MPI_Win *win),
	real_MPI_Win_lock_all(int assert, MPI_Win win),
	real_MPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler handler),
	real_MPI_Win_unlock_all(MPI_Win win);

/* What the first rank tells the others. */
struct placing {
	uint64_t window, control; /* numbers */
	uint32_t place;
	uint32_t
		places; /* 0: `control` is there already; else it is to be made, with so many */
};

static struct mpi_window_control *free_controls;
static uint32_t controls_lock; /* of them and of those in mpi_state */

STUB_HIDDEN void window_controls_reset(void)
{
	free_controls = mpi_state.controls = NULL;
	controls_lock = 0;
}

/* ---- places: in the first rank, under the lock ---- */

static int is_taken(const struct mpi_window_control *c, uint32_t place)
{
	return c->taken[place / 64] >> place % 64 & 1;
}

/* c->places: all are taken, as those also are that have been given back and that not all ranks have left. */
static uint32_t first_free(const struct mpi_window_control *c)
{
	uint32_t place = 0;

	while (place < c->places && is_taken(c, place))
		place++;
	return place;
}

static void take_place(struct mpi_window_control *c, uint32_t place)
{
	c->taken[place / 64] |= 1ul << place % 64;
	c->used++;
}

static int is_of(const struct mpi_window_control *c, MPI_Comm comm, int32_t size)
{
	int result = UNEQUAL;

	return !c->rank && c->size == size && !c->ending &&
	       !real_MPI_Comm_compare(comm, c->comm, &result) && result <= CONGRUENT;
}

/* Of the group of @comm: one with a free place, or how many places the next one is to have. */
static struct mpi_window_control *find_room(MPI_Comm comm, int32_t size, uint32_t *places)
{
	*places = MPI_PLACES_MIN;
	for (struct mpi_window_control *c = mpi_state.controls; c; c = c->next) {
		if (!is_of(c, comm, size))
			continue;
		if (first_free(c) < c->places)
			return c;
		if (2 * c->places > *places)
			*places = 2 * c->places;
	}
	if (*places > MPI_PLACES_MAX)
		*places = MPI_PLACES_MAX;
	return NULL;
}

static struct placing choose_place(MPI_Comm comm, int32_t size)
{
	struct placing p = {.window = gate_new_number()};
	struct mpi_window_control *c;

	raw_lock(&controls_lock);
	c = find_room(comm, size, &p.places);
	if (c) {
		p.places = 0;
		p.control = c->number;
		p.place = first_free(c);
		take_place(c, p.place);
	}
	raw_unlock(&controls_lock);
	if (!c)
		p.control = gate_new_number();
	return p;
}

/* 1: it was the last one, and no more are given. The place itself is free when all have left it. */
static int give_back_last(struct mpi_window_control *c)
{
	int last;

	raw_lock(&controls_lock);
	last = !--c->used;
	c->ending = last;
	raw_unlock(&controls_lock);
	return last;
}

static void free_place(struct mpi_window_control *c, uint32_t place)
{
	raw_lock(&controls_lock);
	c->taken[place / 64] &= ~(1ul << place % 64);
	raw_unlock(&controls_lock);
}

/* ---- all ranks meet ---- */

/* Messages of a place have tags of its own: other threads may be here for other windows. */
static int first_tag(uint32_t place)
{
	return MPI_MEETING_TAGS + (int)place * MPI_MEETING_ROUNDS;
}

/* Each hears of all others, directly or through others. */
static int meet(const struct mpi_window_control *c, uint32_t place)
{
	int tag = first_tag(place), r = 0;

	for (int step = 1; step < c->size && !r; tag++, step *= 2)
		r = real_MPI_Sendrecv(NULL, 0, BYTE, (c->rank + step) % c->size, tag, NULL, 0,
			BYTE, (c->rank + c->size - step) % c->size, tag, c->comm,
			STATUS_IGNORE);
	return r;
}

STUB_HIDDEN int window_control_meet(const struct mpi_window *w)
{
	return meet(w->control, w->place);
}

/* The lowest bit of the rank, by which its parent in a tree has a lower one; of the first rank, one beyond all. */
static int parent_bit(const struct mpi_window_control *c)
{
	int bit = 1;

	while (bit < c->size && !(c->rank & bit))
		bit *= 2;
	return bit;
}

/* The first rank tells all others. */
static void tell_all(const struct mpi_window_control *c, uint32_t place, uint32_t *word)
{
	int tag = first_tag(place) + MPI_MEETING_ROUNDS - 1, bit = parent_bit(c);

	if (c->rank)
		(void)real_MPI_Recv(
			word, sizeof(*word), BYTE, c->rank - bit, tag, c->comm, STATUS_IGNORE);
	for (bit /= 2; bit; bit /= 2)
		if (c->rank + bit < c->size)
			(void)real_MPI_Send(
				word, sizeof(*word), BYTE, c->rank + bit, tag, c->comm);
}

/* It hears of all others, which receive nothing more of this place then. */
static void hear_of_all(const struct mpi_window_control *c, uint32_t place)
{
	int tag = first_tag(place) + MPI_MEETING_ROUNDS - 1, parent = parent_bit(c);

	for (int bit = 1; bit < parent; bit *= 2)
		if (c->rank + bit < c->size)
			(void)real_MPI_Recv(
				NULL, 0, BYTE, c->rank + bit, tag, c->comm, STATUS_IGNORE);
	if (c->rank)
		(void)real_MPI_Send(NULL, 0, BYTE, c->rank - parent, tag, c->comm);
}

/* ---- made ---- */

static struct mpi_window_control *take_free(uint64_t room)
{
	struct mpi_window_control **at = &free_controls, *c;

	raw_lock(&controls_lock);
	while (*at && (*at)->room < room)
		at = &(*at)->next;
	c = *at;
	if (c)
		*at = c->next;
	raw_unlock(&controls_lock);
	return c;
}

/* All of it is zero but where its words are. */
static struct mpi_window_control *new_control(uint64_t room)
{
	struct mpi_window_control *c = take_free(room);
	uint64_t *words;

	if (c) {
		words = c->words;
		room = c->room;
	} else {
		c = records_alloc(sizeof(*c));
		words = c ? records_alloc(room) : NULL;
		if (!words)
			return NULL;
	}
	raw_zero(c, sizeof(*c));
	raw_zero(words, room);
	c->words = words;
	c->room = room;
	return c;
}

/* A communicator of the same ranks; no attributes are copied to it. */
static int make_comm(struct mpi_window_control *c, MPI_Comm comm)
{
	MPI_Group group;
	int r = real_MPI_Comm_group(comm, &group);

	if (r)
		return r;
	r = real_MPI_Comm_create(comm, group, &c->comm);
	real_MPI_Group_free(&group);
	return r ? r : real_MPI_Comm_set_errhandler(c->comm, ERRORS_RETURN);
}

static int make_real(struct mpi_window_control *c)
{
	uint64_t bytes = mpi_control_word(c->size, c->places) * sizeof(*c->words);
	int r = real_MPI_Win_create(
		c->words, bytes, sizeof(*c->words), INFO_NULL, c->comm, &c->real);

	if (!r)
		r = real_MPI_Win_set_errhandler(c->real, ERRORS_RETURN);
	return r ? r : real_MPI_Win_lock_all(MODE_NOCHECK, c->real);
}

static void list_control(struct mpi_window_control *c)
{
	raw_lock(&controls_lock);
	c->next = mpi_state.controls;
	mpi_state.controls = c;
	raw_unlock(&controls_lock);
}

/* The first rank lists it when all others have: from then on it gives places there to windows that other threads
 * make. */
static int make_listed(struct mpi_window_control *c, MPI_Comm comm)
{
	int r = make_comm(c, comm);

	if (!r)
		r = make_real(c);
	if (r)
		return r;
	if (c->rank)
		list_control(c);
	r = meet(c, 0);
	if (!c->rank)
		list_control(c);
	return r;
}

static int make_control(struct mpi_window *w, const struct placing *p, MPI_Comm comm)
{
	struct mpi_window_control *c =
		new_control(mpi_control_word(w->size, p->places) * sizeof(*c->words));

	if (!c)
		return MPI_ERR_INTERN;
	c->number = p->control;
	c->rank = w->rank;
	c->size = w->size;
	c->places = p->places;
	take_place(c, p->place);
	w->control = c;
	return make_listed(c, comm);
}

static struct mpi_window_control *find_control(uint64_t number)
{
	struct mpi_window_control *c;

	raw_lock(&controls_lock);
	for (c = mpi_state.controls; c && c->number != number;)
		c = c->next;
	raw_unlock(&controls_lock);
	return c;
}

STUB_HIDDEN int window_control_join(struct mpi_window *w, MPI_Comm comm, uint64_t *number)
{
	struct placing p = {0};
	int r;

	if (!w->rank)
		p = choose_place(comm, w->size);
	r = real_MPI_Bcast(&p, sizeof(p), BYTE, 0, comm);
	if (!r && p.places)
		r = make_control(w, &p, comm);
	else if (!r)
		w->control = find_control(p.control);
	if (r || !w->control)
		return r ? r : MPI_ERR_INTERN;
	w->place = p.place;
	w->words = w->control->words + mpi_control_word(w->size, p.place);
	*number = p.window;
	return 0;
}

/* ---- freed ---- */

/* A checkpoint that was given up may have left numbers on the communicator that members were to receive
 * (lower/mpi/windows_replay.c). A communicator that is made later may get its context, and would receive them: so all
 * members receive them now, up to a last one. */
static void receive_greetings(const struct mpi_window_control *c)
{
	const uint64_t last = MPI_LAST_DRAIN_ROUND;

	for (int tag = MPI_GREETING_TAGS, step = 1; step < c->size; tag++, step *= 2) {
		int to = (c->rank + step) % c->size;
		int from = (c->rank + c->size - step) % c->size;
		uint64_t heard = 0;
		int r = real_MPI_Sendrecv(&last, sizeof(last), BYTE, to, tag, &heard,
			sizeof(heard), BYTE, from, tag, c->comm, STATUS_IGNORE);

		while (!r && heard != last)
			r = real_MPI_Recv(
				&heard, sizeof(heard), BYTE, from, tag, c->comm, STATUS_IGNORE);
	}
}

static void end_control(struct mpi_window_control *c)
{
	struct mpi_window_control **at = &mpi_state.controls;

	real_MPI_Win_unlock_all(c->real);
	real_MPI_Win_free(&c->real);
	receive_greetings(c);
	real_MPI_Comm_free(&c->comm);
	raw_lock(&controls_lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->next = free_controls;
	free_controls = c;
	raw_unlock(&controls_lock);
}

STUB_HIDDEN void window_control_leave(struct mpi_window *w)
{
	struct mpi_window_control *c = w->control;
	uint32_t last = 0;

	/* Behind the meeting nothing comes any more. What fails here does so in a library that is of no more use. */
	(void)real_MPI_Win_flush_all(c->real);
	(void)meet(c, w->place);
	raw_zero(w->words, mpi_control_words(w->size) * sizeof(*w->words));
	if (!w->rank)
		last = give_back_last(c);
	tell_all(c, w->place, &last);
	hear_of_all(c, w->place);
	if (last)
		end_control(c);
	else if (!w->rank)
		free_place(c, w->place);
}
