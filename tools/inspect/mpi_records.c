/* mpi_records.c - follows pointers in memory as the image has it. The image is not trusted. */
#include "tools/inspect/mpi_records.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "shared/records.h"
#include "tools/inspect/contents.h"
#include "tools/inspect/text.h"

#define MAX_CALLS 4096

static const char *const kinds[MPI_KEYVAL + 1] = {
	[MPI_COMM] = "communicators",
	[MPI_GROUP] = "groups",
	[MPI_DATATYPE] = "datatypes",
	[MPI_ERRHANDLER] = "error handlers",
	[MPI_OP] = "operations",
	[MPI_INFO] = "info objects",
	[MPI_KEYVAL] = "keys of attributes",
};

/* Not the stub's own. */
static bool is_of_all(const struct mpi_count *c)
{
	return c->number && c->number != MPI_NUMBER_PARTS && !(c->number & MPI_NUMBER_OF_SOME);
}

/* ---- reading ---- */

/* Names stand one behind the other; @at is moved from this one to the next. */
static int next_name(struct contents *m, uint64_t *at, char *name, size_t room)
{
	size_t used = 0;
	uint64_t word;

	for (;;) {
		if (contents_read_word(m, *at, &word, NULL))
			return -1;
		for (unsigned i = 0; i < sizeof(word); i++) {
			char c = (char)(word >> 8 * i);

			++*at;
			if (used + 1 < room)
				name[used++] = c;
			if (!c)
				return 0;
		}
	}
}

/* One walk over all names finds the names of all communicators. */
static void read_names(struct contents *m, struct mpi_records *r)
{
	size_t count = buf_count(&r->communicators, struct mpi_communicator);
	uint64_t at = (uintptr_t)r->state.names;

	for (uint32_t call = 0; call < r->state.calls && call < MAX_CALLS; call++) {
		char name[64] = "";

		if (next_name(m, &at, name, sizeof(name)))
			return;
		name[sizeof(name) - 1] = 0;
		for (size_t i = 0; i < count; i++) {
			struct mpi_communicator *comm =
				buf_at(&r->communicators, struct mpi_communicator, i);

			if (comm->count.call == call &&
				(comm->count.entered || comm->count.parked))
				memcpy(comm->call, name, sizeof(name));
		}
	}
}

static int read_communicators(struct contents *m, struct mpi_records *r)
{
	if (r->state.counts_used > MPI_COUNTS)
		return -1;
	for (uint32_t i = 0; i < r->state.counts_used; i++) {
		struct mpi_communicator comm = {0};

		if (contents_read(m, (uintptr_t)(r->state.counts + i), &comm.count,
			    sizeof(comm.count)))
			return -1;
		if (is_of_all(&comm.count))
			buf_push(&r->communicators, struct mpi_communicator, &comm);
	}
	return 0;
}

static int count_objects(struct contents *m, struct mpi_records *r)
{
	if (r->state.count > MPI_HANDLES)
		return -1;
	for (uint32_t i = 0; i < r->state.count; i++) {
		struct mpi_object o;
		uint64_t at;

		if (contents_read_word(m, (uintptr_t)(r->state.objects + i), &at, NULL) ||
			contents_read(m, at, &o, sizeof(o)))
			return -1;
		if (o.real && o.references && o.kind <= MPI_KEYVAL)
			r->objects[o.kind]++;
	}
	if (r->state.partitions && r->objects[MPI_COMM])
		r->objects[MPI_COMM]--; /* it is the stub's own */
	return 0;
}

static int read_all_of(struct contents *m, struct mpi_records *r)
{
	struct records records;

	if (contents_read(m, RECORDS_LIVE, &records, sizeof(records)) ||
		records.magic != RECORDS_MAGIC || records.version != RECORDS_VERSION ||
		!records.mpi ||
		contents_read(m, (uintptr_t)records.mpi, &r->state, sizeof(r->state)) ||
		!r->state.initialised)
		return -1;
	if (read_communicators(m, r) || count_objects(m, r))
		return -1;
	read_names(m, r);
	return 0;
}

bool mpi_records_read(const struct checkpoint *c, size_t process, struct mpi_records *r)
{
	struct contents *m;
	size_t files;
	bool found;

	memset(r, 0, sizeof(*r));
	image_note_array(c->processes[process], IMAGE_NOTE_LOWER, struct image_module, &files);
	if (!files)
		return false;
	m = contents_open(c, process);
	found = !read_all_of(m, r);
	contents_close(m);
	if (!found)
		mpi_records_free(r);
	return found;
}

void mpi_records_free(struct mpi_records *r)
{
	buf_free(&r->communicators);
}

/* ---- showing ---- */

const char *mpi_number_text(uint64_t number, char text[MPI_NUMBER_TEXT])
{
	if (number == MPI_NUMBER_WORLD)
		return "MPI_COMM_WORLD";
	if (number == MPI_NUMBER_SELF)
		return "MPI_COMM_SELF";
	snprintf(text, MPI_NUMBER_TEXT, "%" PRIu64 ".%" PRIu32, (number >> 32) - 1,
		(uint32_t)number);
	return text;
}

void mpi_text(const struct checkpoint *c, size_t process, struct buf *out)
{
	cleanup_buf struct buf held = {0};
	struct mpi_records r;

	if (!mpi_records_read(c, process, &r))
		return;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		if (kinds[k] && r.objects[k])
			buf_printf(&held, ", %" PRIu64 " %s", r.objects[k], kinds[k]);
	text_line(out, "MPI         rank %d of %d%s%s", r.state.rank, r.state.size,
		r.state.finalized ? ", behind MPI_Finalize" : "", text_of(&held));
	mpi_records_free(&r);
}

static void communicator_json(const struct mpi_communicator *comm, struct json *j)
{
	char text[MPI_NUMBER_TEXT];

	json_object(j, NULL);
	json_text(j, "number", mpi_number_text(comm->count.number, text));
	json_number(j, "size", comm->count.members);
	json_number(j, "entered", comm->count.entered);
	json_number(j, "left", comm->count.left);
	json_number(j, "waiting_threads", comm->count.parked);
	json_text(j, "last_call", *comm->call ? comm->call : NULL);
	json_end(j);
}

void mpi_json(const struct checkpoint *c, size_t process, struct json *j)
{
	struct mpi_records r;

	if (!mpi_records_read(c, process, &r))
		return;
	json_object(j, "mpi");
	json_integer(j, "rank", r.state.rank);
	json_integer(j, "size", r.state.size);
	json_bool(j, "finalized", r.state.finalized);
	json_array(j, "communicators");
	for (size_t i = 0; i < buf_count(&r.communicators, struct mpi_communicator); i++)
		communicator_json(buf_at(&r.communicators, struct mpi_communicator, i), j);
	json_end(j);
	json_object(j, "objects");
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		if (kinds[k] && r.objects[k])
			json_number(j, kinds[k], r.objects[k]);
	json_end(j);
	json_end(j);
	mpi_records_free(&r);
}
