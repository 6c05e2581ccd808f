/*
 * Collective calls: all send to one member, or it to all, or both, by messages on a context of their own. Who is not
 * needed any more leaves: a broadcast waits for its root only.
 */
#include <stdlib.h>
#include <string.h>

#include "library.h"

#define CONTEXT_BIT (1ul << 63)

struct collective {
	struct collective *next; /* of those under way */
	struct request *request;
	struct comm *comm;
	uint64_t context;
	int root, tag, size, rank;
	bool gathers, scatters, begun;
	uint64_t bytes, result_bytes;
	MPI_Datatype type;
	MPI_Op op; /* MPI_OP_NULL: what is gathered is the result */
	char *own, *gathered, *result;
	void *out; /* the program's; NULL: it is not to get the result */
	struct request *parts[RANKS_MAX];
};

static struct collective *under_way;

static void *room_for(uint64_t bytes)
{
	void *room = calloc(1, bytes + 1);

	if (!room)
		sim_fatal("no memory for %lu bytes", bytes);
	return room;
}

/* ---- operations ---- */

#define COMBINE(type)                                                                          \
	for (uint64_t i = 0; i < bytes / sizeof(type); i++) {                                  \
		type a = ((type *)to)[i], b = ((const type *)from)[i];                         \
                                                                                               \
		((type *)to)[i] = op == MPI_SUM   ? a + b                                      \
				  : op == MPI_MAX ? (a > b ? a : b)                            \
						  : (a < b ? a : b);                           \
	}

void collective_combine(
	MPI_Op op, MPI_Datatype type, void *to, const void *from, uint64_t bytes)
{
	if (op == MPI_REPLACE)
		memcpy(to, from, bytes);
	else if (type == MPI_INT)
		COMBINE(int)
	else if (type == MPI_LONG || type == MPI_INT64_T)
		COMBINE(long)
	else if (type == MPI_DOUBLE)
		COMBINE(double)
	else
		sim_fatal("operations on type 0x%x are not simulated", type);
}

static void make_result(struct collective *c)
{
	if (!c->gathers) {
		memcpy(c->result, c->own, c->bytes);
		return;
	}
	memcpy(c->gathered + c->rank * c->bytes, c->own, c->bytes);
	memcpy(c->result, c->gathered, c->result_bytes);
	for (int i = 1; i < c->size && c->op != MPI_OP_NULL; i++)
		collective_combine(
			c->op, c->type, c->result, c->gathered + i * c->bytes, c->bytes);
}

/* ---- progress ---- */

static bool parts_done(struct collective *c)
{
	for (int i = 0; i < c->size; i++)
		if (c->parts[i] && !c->parts[i]->done)
			return false;
	for (int i = 0; i < c->size; i++)
		if (c->parts[i]) {
			request_drop(c->parts[i]);
			c->parts[i] = NULL;
		}
	return true;
}

static void gather(struct collective *c)
{
	if (c->rank != c->root)
		c->parts[c->root] =
			message_send(c->comm, c->context, c->own, c->bytes, c->root, c->tag);
	for (int i = 0; c->rank == c->root && i < c->size; i++)
		if (i != c->rank)
			c->parts[i] = message_receive(c->comm, c->context,
				c->gathered + i * c->bytes, c->bytes, i, c->tag);
}

static void scatter(struct collective *c)
{
	if (c->rank != c->root)
		c->parts[c->root] = message_receive(
			c->comm, c->context, c->result, c->result_bytes, c->root, c->tag);
	for (int i = 0; c->rank == c->root && i < c->size; i++)
		if (i != c->rank)
			c->parts[i] = message_send(
				c->comm, c->context, c->result, c->result_bytes, i, c->tag);
}

static bool go_on(struct collective *c)
{
	if (!parts_done(c))
		return false;
	if (!c->begun && c->rank == c->root)
		make_result(c);
	if (!c->begun && c->scatters) {
		c->begun = true;
		scatter(c);
		return false;
	}
	return true;
}

void collectives_progress(void)
{
	for (struct collective **at = &under_way; *at;) {
		struct collective *c = *at;

		if (!go_on(c)) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		if (c->out)
			memcpy(c->out, c->result, c->result_bytes);
		request_done(c->request);
	}
}

/* ---- begin ---- */

static struct collective *new_collective(struct comm *comm, int root, uint64_t bytes)
{
	struct collective *c = room_for(sizeof(*c));

	*c = (struct collective){.comm = comm,
		.context = comm->context | CONTEXT_BIT,
		.root = root,
		.tag = (int)(comm->calls++ & 0x3fffffff),
		.size = comm->group.size,
		.rank = comm->rank,
		.bytes = bytes,
		.result_bytes = bytes,
		.op = MPI_OP_NULL};
	c->own = room_for(bytes);
	return c;
}

static void begin(struct collective *c, struct request *r)
{
	c->gathered = room_for(c->bytes * c->size);
	c->result = room_for(c->result_bytes);
	c->request = r;
	r->collective = c;
	c->next = under_way;
	under_way = c;
	if (c->gathers)
		gather(c);
	sim_progress();
}

void collective_drop(struct collective *c)
{
	if (!c)
		return;
	free(c->own);
	free(c->gathered);
	free(c->result);
	free(c);
}

static int complete(struct collective *c)
{
	struct request *r = request_new(COLLECTIVE, c->comm);
	int error;

	begin(c, r);
	while (!r->done)
		sim_pause();
	error = r->error;
	request_drop(r);
	return error;
}

int collective_barrier(struct comm *comm)
{
	struct collective *c = new_collective(comm, 0, 0);

	c->gathers = c->scatters = true;
	return complete(c);
}

int collective_gather_all(struct comm *comm, const void *in, void *out, uint64_t bytes)
{
	struct collective *c = new_collective(comm, 0, bytes);

	memcpy(c->own, in, bytes);
	c->gathers = c->scatters = true;
	c->result_bytes = bytes * comm->group.size;
	c->out = out;
	return complete(c);
}

/* ---- calls ---- */

static struct collective *reduction(struct comm *comm, const void *in, void *out, int64_t bytes,
	MPI_Datatype type, MPI_Op op, int root)
{
	struct collective *c = new_collective(comm, root, bytes);

	memcpy(c->own, in == MPI_IN_PLACE ? out : in, bytes);
	c->gathers = true;
	c->type = type;
	c->op = op;
	c->out = out;
	return c;
}

/* With the lock; NULL: the arguments are wrong. */
static struct comm *checked(MPI_Comm comm, int64_t bytes, int root)
{
	struct comm *c;

	sim_lock();
	c = comm_find(comm);
	if (c && bytes >= 0 && root >= 0 && root < c->group.size)
		return c;
	sim_unlock();
	return NULL;
}

static int finished(int error)
{
	sim_unlock();
	return error;
}

int MPI_Barrier(MPI_Comm comm)
{
	struct comm *c = checked(comm, 0, 0);

	return c ? finished(collective_barrier(c)) : comm_failed(NULL, MPI_ERR_COMM);
}

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	struct comm *c = checked(comm, type_bytes(type, count), root);
	struct collective *call;

	if (!c)
		return comm_failed(NULL, MPI_ERR_COMM);
	call = new_collective(c, root, type_bytes(type, count));
	call->scatters = true;
	if (c->rank == root)
		memcpy(call->own, data, call->bytes);
	else
		call->out = data;
	return finished(complete(call));
}

int MPI_Reduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root,
	MPI_Comm comm)
{
	struct comm *c = checked(comm, type_bytes(type, count), root);

	if (!c)
		return comm_failed(NULL, MPI_ERR_COMM);
	return finished(complete(reduction(
		c, in, c->rank == root ? out : NULL, type_bytes(type, count), type, op, root)));
}

int MPI_Allreduce(
	const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct comm *c = checked(comm, type_bytes(type, count), 0);
	struct collective *call;

	if (!c)
		return comm_failed(NULL, MPI_ERR_COMM);
	call = reduction(c, in, out, type_bytes(type, count), type, op, 0);
	call->scatters = true;
	return finished(complete(call));
}

int MPI_Allgather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
	MPI_Datatype out_type, MPI_Comm comm)
{
	int64_t bytes = type_bytes(type, count);
	struct comm *c =
		checked(comm, bytes == type_bytes(out_type, out_count) ? bytes : -1, 0);

	return c ? finished(collective_gather_all(c, in, out, bytes))
		 : comm_failed(NULL, MPI_ERR_COMM);
}

/* ---- nonblocking ones ---- */

static int begun(struct comm *comm, struct collective *c, MPI_Request *request)
{
	struct request *r = request_new(COLLECTIVE, comm);

	r->handle = *request = handle_make(REQUEST, r);
	begin(c, r);
	return finished(0);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	struct comm *c = checked(comm, 0, 0);
	struct collective *call;

	if (!c)
		return comm_failed(NULL, MPI_ERR_COMM);
	call = new_collective(c, 0, 0);
	call->gathers = call->scatters = true;
	return begun(c, call, request);
}

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
	MPI_Comm comm, MPI_Request *request)
{
	struct comm *c = checked(comm, type_bytes(type, count), 0);
	struct collective *call;

	if (!c)
		return comm_failed(NULL, MPI_ERR_COMM);
	call = reduction(c, in, out, type_bytes(type, count), type, op, 0);
	call->scatters = true;
	return begun(c, call, request);
}
