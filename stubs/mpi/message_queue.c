/*
 * message_queue.c - messages that were received for a checkpoint, before the program has asked for them. They are
 * older than all that the library has, so that receives and probes look here first.
 *
 * A message is delivered by sending it to oneself, on a communicator of our own: so it is unpacked, truncated and
 * counted as the library does it.
 */
#include <sys/mman.h>

#include "stubs/crossing/crossing.h"
#include "stubs/mpi/requests.h"

#include "mpi.index.h"

static struct mpi_message **find_message(struct mpi_count *counts, int source, int tag)
{
	struct mpi_message **at = &counts->messages;

	for (; *at; at = &(*at)->next)
		if ((source == MPI_ANY_SOURCE || source == (*at)->source) &&
			(tag == MPI_ANY_TAG || tag == (*at)->tag))
			return at;
	return NULL;
}

/* The checkpoint was given up while it was being received. */
static void await_whole(struct mpi_message *m)
{
	int32_t status[MPI_STATUS_INTS];
	int flag;

	while (m->request != MPI_REQUEST_NULL)
		if (LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(
			    &m->request, &flag, status))
			m->request = MPI_REQUEST_NULL;
}

STUB_HIDDEN struct mpi_message *queue_match(
	struct mpi_count *counts, int source, int tag, int take)
{
	struct mpi_message **at, *m = NULL;

	if (!counts || !mpi_messages.queued || !counts->messages)
		return NULL;
	messages_lock();
	at = find_message(counts, source, tag);
	if (at) {
		m = *at;
		if (take) {
			*at = m->next;
			mpi_messages.queued--;
		}
	}
	messages_unlock();
	return m;
}

STUB_HIDDEN void queue_put_back(struct mpi_count *counts, struct mpi_message *m)
{
	struct mpi_message **at = &counts->messages;

	messages_lock();
	while (*at && *at != m->next)
		at = &(*at)->next;
	/* What was behind it another thread has taken: it is older than the rest. */
	if (*at != m->next) {
		at = &counts->messages;
		m->next = *at;
	}
	*at = m;
	mpi_messages.queued++;
	messages_unlock();
}

STUB_HIDDEN void queue_give_back(struct mpi_message *m)
{
	int class = mpi_message_class(sizeof(*m) + m->room);

	if (class < 0) {
		raw(SYS_munmap, m, sizeof(*m) + m->room); /* it is mapped: cannot fail */
		return;
	}
	raw_lock(&mpi_messages.memory_lock);
	m->next = mpi_messages.memory[class];
	mpi_messages.memory[class] = m;
	raw_unlock(&mpi_messages.memory_lock);
}

static struct mpi_message *map_memory(uint64_t size)
{
	long r = raw(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);

	return raw_failed(r) ? NULL : (struct mpi_message *)r;
}

static struct mpi_message *listed_memory(int class)
{
	struct mpi_message *m;

	raw_lock(&mpi_messages.memory_lock);
	m = mpi_messages.memory[class];
	if (m)
		mpi_messages.memory[class] = m->next;
	raw_unlock(&mpi_messages.memory_lock);
	return m ? m : records_alloc(1ul << class);
}

STUB_HIDDEN struct mpi_message *queue_memory_in_step(uint64_t size)
{
	enum { PAGE = 12 }; /* a class of its own; what is smaller has a page, too */
	uint64_t total = sizeof(struct mpi_message) + size;
	int class = mpi_message_class(total < 1 << PAGE ? 1 << PAGE : total);
	struct mpi_message *m = NULL;

	total = class < 0 ? (total + 4095) & ~4095ul : 1ul << class;
	raw_lock(&mpi_messages.memory_lock);
	if (class >= 0 && mpi_messages.memory[class]) {
		m = mpi_messages.memory[class];
		mpi_messages.memory[class] = m->next;
	}
	raw_unlock(&mpi_messages.memory_lock);
	if (!m)
		m = map_memory(total);
	if (!m)
		return NULL;
	m->next = NULL;
	m->size = size;
	m->room = total - sizeof(*m);
	m->bytes = (char *)(m + 1);
	m->request = MPI_REQUEST_NULL;
	return m;
}

struct wanted {
	uint64_t size;
	struct mpi_message *memory;
};

/* Guarded: the lower half takes memory of the same lists while the program stands still. */
static int get_memory(void *argument)
{
	struct wanted *w = argument;
	uint64_t total = sizeof(struct mpi_message) + w->size;
	int class = mpi_message_class(total);
	struct mpi_message *m;

	total = class < 0 ? (total + 4095) & ~4095ul : 1ul << class;
	m = class < 0 ? map_memory(total) : listed_memory(class);
	if (!m)
		return -1;
	m->next = NULL;
	m->size = w->size;
	m->room = total - sizeof(*m);
	m->bytes = (char *)(m + 1);
	w->memory = m;
	return 0;
}

STUB_HIDDEN struct mpi_message *queue_memory(uint64_t size)
{
	struct wanted w = {.size = size};

	return mpi_guarded(&w, get_memory) ? NULL : w.memory;
}

static int give_memory_back(void *memory)
{
	queue_give_back(memory);
	return 0;
}

STUB_HIDDEN void queue_memory_unused(struct mpi_message *m)
{
	(void)mpi_guarded(m, give_memory_back);
}

STUB_HIDDEN void queue_status(const struct mpi_message *m, int32_t *status)
{
	if (status == STATUS_IGNORE)
		return;
	status[MPI_STATUS_COUNT] = (int32_t)m->size;
	status[MPI_STATUS_COUNT_HIGH] = (int32_t)(m->size >> 32) << 1;
	status[MPI_STATUS_SOURCE] = m->source;
	status[MPI_STATUS_TAG] = m->tag;
}

/* ---- delivery ---- */

static int own_communicator(void)
{
	struct mpi_messages *s = &mpi_messages;
	int made, r = 0;

	raw_lock(&s->memory_lock);
	if (!s->self) {
		r = LOWER_CALL(MPI_Comm_dup, (int, int *))(COMM_SELF, &made);
		if (!r)
			r = LOWER_CALL(MPI_Comm_set_errhandler, (int, int))(
				made, ERRORS_RETURN);
		if (!r)
			s->self = made;
	}
	raw_unlock(&s->memory_lock);
	return r;
}

static int send_to_oneself(const struct mpi_message *m, int32_t *request)
{
	if (m->size > INT32_MAX)
		return LOWER_CALL(
			MPI_Isend_c, (const void *, int64_t, int, int, int, int, int32_t *))(
			m->bytes, m->size, BYTE, 0, 0, mpi_messages.self, request);
	return LOWER_CALL(MPI_Isend, (const void *, int, int, int, int, int, int32_t *))(
		m->bytes, (int)m->size, BYTE, 0, 0, mpi_messages.self, request);
}

static int receive_from_oneself(const struct message_call *c, int32_t *request)
{
	int type = real_handle(c->datatype);

	if (c->count > INT32_MAX)
		return LOWER_CALL(
			MPI_Irecv_c, (void *, int64_t, int, int, int, int, int32_t *))(
			c->buffer, c->count, type, 0, 0, mpi_messages.self, request);
	return LOWER_CALL(MPI_Irecv, (void *, int, int, int, int, int, int32_t *))(
		c->buffer, (int)c->count, type, 0, 0, mpi_messages.self, request);
}

/* Errors of what is complete at once may go to the handler of MPI_COMM_WORLD (MPICH 4.0.2). */
static int exchange_with_oneself(
	const struct mpi_message *m, const struct message_call *c, int32_t *status)
{
	int32_t requests[2], ignored[MPI_STATUS_INTS];
	int r, sent, flag = 0;

	r = receive_from_oneself(c, &requests[0]);
	if (r)
		return r;
	sent = send_to_oneself(m, &requests[1]);
	if (sent) {
		LOWER_CALL(MPI_Cancel, (int32_t *))(&requests[0]);
		LOWER_CALL(MPI_Request_free, (int32_t *))(&requests[0]);
		return sent;
	}
	while (!r && !flag)
		r = LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(
			&requests[0], &flag, status);
	for (flag = 0; !sent && !flag;)
		sent = LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(
			&requests[1], &flag, ignored);
	return r ? r : sent;
}

/* The handler of MPI_COMM_WORLD is not asked: the caller tells the right one. */
static int deliver_quietly(
	const struct mpi_message *m, const struct message_call *c, int32_t *status)
{
	int world = real_handle(mpi_messages.world_handler), r;

	r = own_communicator();
	if (r)
		return r;
	if (world != ERRORS_RETURN)
		LOWER_CALL(MPI_Comm_set_errhandler, (int, int))(COMM_WORLD, ERRORS_RETURN);
	r = exchange_with_oneself(m, c, status);
	if (world != ERRORS_RETURN)
		LOWER_CALL(MPI_Comm_set_errhandler, (int, int))(COMM_WORLD, world);
	return r;
}

STUB_HIDDEN int queue_deliver(
	struct mpi_message *m, const struct message_call *c, int32_t *status)
{
	int32_t got[MPI_STATUS_INTS] = {0};
	int r;

	await_whole(m);
	r = deliver_quietly(m, c, got);
	/* Open MPI 4.1 does not report that of a message from oneself whose receive was there first. */
	if (!r && mpi_received_size(got) < m->size)
		r = MPI_ERR_TRUNCATE;
	if (status != STATUS_IGNORE) {
		status[MPI_STATUS_COUNT] = got[MPI_STATUS_COUNT];
		status[MPI_STATUS_COUNT_HIGH] = got[MPI_STATUS_COUNT_HIGH];
		status[MPI_STATUS_SOURCE] = m->source;
		status[MPI_STATUS_TAG] = m->tag;
	}
	queue_give_back(m);
	count_up(&mpi_messages.steps);
	return r;
}

STUB_HIDDEN void queue_drop(struct mpi_count *counts)
{
	while (counts && counts->messages) {
		struct mpi_message *m = counts->messages;

		counts->messages = m->next;
		mpi_messages.queued--;
		queue_give_back(m);
	}
}
