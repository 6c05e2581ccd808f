/*
 * buffers.c - buffers for buffered sends: of the process, of communicators and of sessions (MPI 4.1), attached, detached and flushed. The stub
 * has all of them, so that they are there with an older library, too.
 */
#include "stubs/crossing/crossing.h"
#include "stubs/mpi/messages_buffered.h"

#include "mpi.index.h"

extern STUB_HIDDEN int real_MPI_Comm_call_errhandler(MPI_Comm comm, int error),
	real_MPI_Session_call_errhandler(MPI_Session session, int error),
	real_MPI_Buffer_attach(void *buffer, int size),
	real_MPI_Buffer_detach(void *buffer, int *size),
	real_MPI_Buffer_attach_c(void *buffer, MPI_Count size),
	real_MPI_Buffer_detach_c(void *buffer, MPI_Count *size), real_MPI_Buffer_flush(void);

/* ---- whose is used ---- */

static int is_attached(const struct mpi_buffer *b)
{
	return b && b->address;
}

STUB_HIDDEN struct mpi_buffer *buffer_for(const struct mpi_object *comm)
{
	const struct mpi_object *session = comm ? object_of(comm->session) : NULL;

	if (comm && is_attached(comm->buffer))
		return comm->buffer;
	if (session && is_attached(session->buffer))
		return session->buffer;
	return is_attached(&mpi_state.buffer) ? &mpi_state.buffer : NULL;
}

/* ---- attached and detached ---- */

/* MPI_BUFFER_AUTOMATIC is no address: no library is asked, as older ones do not know it. */
static int is_automatic(const void *buffer)
{
	return (intptr_t)buffer < 0;
}

/* The error handler of @of, a communicator or session, is told; NULL: of MPI_COMM_WORLD. */
static int fail(const struct mpi_object *of, int error)
{
	if (of && of->kind == MPI_SESSION)
		(void)real_MPI_Session_call_errhandler(of->handle, error);
	else
		(void)real_MPI_Comm_call_errhandler(of ? of->handle : COMM_WORLD, error);
	return error;
}

static int attach(
	const struct mpi_object *of, struct mpi_buffer *b, void *address, int64_t size)
{
	if (!b)
		return fail(of, MPI_ERR_OTHER);
	if (b->address)
		return fail(of, MPI_ERR_BUFFER);
	if (size < 0)
		return fail(of, MPI_ERR_ARG);
	b->size = is_automatic(address) ? INT64_MAX : size;
	b->address = address;
	return 0;
}

/* The size of what was attached. */
static int64_t detach(unsigned index, struct mpi_buffer *b, void **address)
{
	if (!is_attached(b)) {
		*address = NULL;
		return 0;
	}
	buffered_await(index, b);
	*address = b->address;
	b->address = NULL;
	return b->size == INT64_MAX ? 0 : b->size;
}

/* ---- of the process ---- */

BY_HAND(MPI_Buffer_attach, (void *buffer, int size));
int body_MPI_Buffer_attach(void *buffer, int size)
{
	int r = 0, its;
	void *was;

	/* The library looks at the arguments. */
	if (!mpi_state.buffer.address && !is_automatic(buffer))
		r = real_MPI_Buffer_attach(buffer, size);
	if (!r && !mpi_state.buffer.address && !is_automatic(buffer))
		r = real_MPI_Buffer_detach(&was, &its);
	return r ? r : attach(NULL, &mpi_state.buffer, buffer, size);
}

BY_HAND(MPI_Buffer_attach_c, (void *buffer, MPI_Count size));
int body_MPI_Buffer_attach_c(void *buffer, MPI_Count size)
{
	MPI_Count its;
	void *was;
	int r = 0;

	if (!mpi_state.buffer.address && !is_automatic(buffer))
		r = real_MPI_Buffer_attach_c(buffer, size);
	if (!r && !mpi_state.buffer.address && !is_automatic(buffer))
		r = real_MPI_Buffer_detach_c(&was, &its);
	return r ? r : attach(NULL, &mpi_state.buffer, buffer, size);
}

OPEN(MPI_Buffer_detach, (void *buffer, int *size))
{
	if (!mpi_state.buffer.address)
		return real_MPI_Buffer_detach(buffer, size);
	*size = (int)detach(INDEX_MPI_Buffer_detach, &mpi_state.buffer, buffer);
	return 0;
}

OPEN(MPI_Buffer_detach_c, (void *buffer, MPI_Count *size))
{
	if (!mpi_state.buffer.address)
		return real_MPI_Buffer_detach_c(buffer, size);
	*size = detach(INDEX_MPI_Buffer_detach_c, &mpi_state.buffer, buffer);
	return 0;
}

/* ---- flushed ---- */

static int step_iflush(struct message_call *c)
{
	struct mpi_request *r = request_take();

	if (!r)
		return STEP_ROOM;
	request_describe(r, c);
	r->kind = MPI_BUFFER_FLUSH;
	r->real = MPI_REQUEST_NULL;
	r->counts = NULL;
	r->in = c->in;
	request_posted(r);
	*c->handle = r->handle;
	return STEP_DONE;
}

/* Complete when all that is in the buffer now has been sent. */
static int begin_flush(unsigned index, struct mpi_buffer *b, int32_t *request)
{
	struct message_call c;

	message_call_about(
		&c, step_iflush, index, NULL, 0, BYTE, MPI_PROC_NULL, MPI_ANY_TAG, COMM_WORLD);
	c.in = b;
	c.handle = request;
	return message_once(&c);
}

STUB_HIDDEN int flush_is_withheld(struct mpi_request *r)
{
	if (!is_attached(r->in) || !buffered_before(r->in, r->posted)) {
		raw_zero(r->status, sizeof(r->status));
		r->status[MPI_STATUS_SOURCE] = MPI_ANY_SOURCE;
		r->status[MPI_STATUS_TAG] = MPI_ANY_TAG;
		r->error = 0;
		r->held = 1;
	}
	return !r->held;
}

static int flush(unsigned index, struct mpi_buffer *b)
{
	if (is_attached(b))
		buffered_await(index, b);
	return 0;
}

OPEN(MPI_Buffer_flush, (void))
{
	return flush(INDEX_MPI_Buffer_flush, &mpi_state.buffer);
}

OPEN(MPI_Buffer_iflush, (int *request))
{
	return begin_flush(INDEX_MPI_Buffer_iflush, &mpi_state.buffer, request);
}

/* ---- of communicators and sessions ---- */

static struct mpi_object *session_object(MPI_Session session)
{
	return object_of(session);
}

static int attach_to(struct mpi_object *o, int error, void *address, int64_t size)
{
	if (!o)
		return fail(NULL, error);
	if (!o->buffer)
		o->buffer = buffer_new();
	return attach(o, o->buffer, address, size);
}

static int detach_from(
	unsigned index, struct mpi_object *o, int error, void **address, int64_t *size)
{
	if (!o)
		return fail(NULL, error);
	*size = detach(index, o->buffer, address);
	return 0;
}

/* A template, as there are the same functions for both, and with large counts. */
#define BUFFER_OF(kind, type, object_by, error)                                                \
	BY_HAND(MPI_##kind##_attach_buffer, (type of, void *buffer, int size));                \
	int body_MPI_##kind##_attach_buffer(type of, void *buffer, int size)                   \
	{                                                                                      \
		return attach_to(object_by(of), error, buffer, size);                          \
	}                                                                                      \
	BY_HAND(MPI_##kind##_attach_buffer_c, (type of, void *buffer, MPI_Count size));        \
	int body_MPI_##kind##_attach_buffer_c(type of, void *buffer, MPI_Count size)           \
	{                                                                                      \
		return attach_to(object_by(of), error, buffer, size);                          \
	}                                                                                      \
	OPEN(MPI_##kind##_detach_buffer, (type of, void *buffer, int *size))                   \
	{                                                                                      \
		int64_t its = 0;                                                               \
		int r = detach_from(                                                           \
			INDEX_MPI_##kind##_detach_buffer, object_by(of), error, buffer, &its); \
		*size = (int)its;                                                              \
		return r;                                                                      \
	}                                                                                      \
	OPEN(MPI_##kind##_detach_buffer_c, (type of, void *buffer, MPI_Count *size))           \
	{                                                                                      \
		return detach_from(INDEX_MPI_##kind##_detach_buffer_c, object_by(of), error,   \
			buffer, size);                                                         \
	}                                                                                      \
	OPEN(MPI_##kind##_flush_buffer, (type of))                                             \
	{                                                                                      \
		struct mpi_object *o = object_by(of);                                          \
		return o ? flush(INDEX_MPI_##kind##_flush_buffer, o->buffer)                   \
			 : fail(NULL, error);                                                  \
	}                                                                                      \
	OPEN(MPI_##kind##_iflush_buffer, (type of, int *request))                              \
	{                                                                                      \
		struct mpi_object *o = object_by(of);                                          \
		return o ? begin_flush(INDEX_MPI_##kind##_iflush_buffer, o->buffer, request)   \
			 : fail(NULL, error);                                                  \
	}
BUFFER_OF(Comm, MPI_Comm, comm_object, MPI_ERR_COMM)
BUFFER_OF(Session, MPI_Session, session_object, MPI_ERR_SESSION)
