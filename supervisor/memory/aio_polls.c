/*
 * Requests of asynchronous I/O that wait for a file (IOCB_CMD_POLL).
 *
 * Nothing tells which are under way: what does is to cancel one by its address, which fails for
 * all others and changes nothing then. The address is that of the program's own struct iocb,
 * and those are in its memory: whatever looks like one there is asked about. A request that has
 * been cancelled is issued again at once, as the program has it. Its event is taken away by
 * bringing the kernel's place in the ring round to where it was (aio_ring_position.h).
 *
 * Not found are requests whose struct iocb the program has not kept as it was.
 */
#include "supervisor/memory/aio_polls.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "supervisor/memory/aio_dump.h"
#include "supervisor/memory/aio_ring_position.h"
#include "supervisor/memory/memory_source.h"
#include "supervisor/target/remote_query.h"

/* The kernel's own work queue writes the event of a cancelled request. */
#define PATIENCE_NS 3000000000ull
#define CHUNK       (1u << 20)

struct context {
	uint64_t at;
	struct image_aio_ring ring; /* as the program left it */
	struct buf unread;          /* struct io_event: the same */
	struct buf cancelled;       /* uint64_t: addresses of struct iocb */
};

struct polls {
	struct dump *d;
	struct buf open;       /* bool, by descriptor */
	struct buf candidates; /* uint64_t */
	struct buf contexts;   /* struct context */
	struct remote remote;
	struct aio_ring_access turn;
};

/* ---- what looks like one ---- */

static int find_descriptors(struct polls *p, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd", p->d->process->task);
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return err_set(e, errno, "cannot open %s", path);
	while ((entry = readdir(dir))) {
		size_t fd = strtoul(entry->d_name, NULL, 10);

		if (entry->d_name[0] == '.')
			continue;
		while (buf_count(&p->open, bool) <= fd)
			buf_push(&p->open, bool, &(bool){false});
		*buf_at(&p->open, bool, fd) = true;
	}
	closedir(dir);
	return 0;
}

/* As the kernel takes it (aio_poll() in fs/aio.c). */
static bool is_poll(const struct polls *p, const uint64_t *word)
{
	struct iocb r;

	/* Most words are told from one by these. */
	if (word[1] || (uint16_t)word[2] != IOCB_CMD_POLL || word[3] - 1 >= UINT16_MAX)
		return false;
	memcpy(&r, word, sizeof(r));
	return !r.aio_nbytes && !r.aio_offset && !r.aio_reserved2 &&
	       r.aio_fildes < buf_count(&p->open, bool) &&
	       *buf_at(&p->open, bool, r.aio_fildes);
}

static int search_run(
	struct polls *p, const struct block_run *run, uint64_t *data, struct err *e)
{
	const size_t more = sizeof(struct iocb);

	for (uint64_t at = 0; at < run->size; at += CHUNK) {
		uint64_t left = run->size - at,
			 size = left < CHUNK + more ? left : CHUNK + more;

		if (run->read(run->context, run->address + at, data, size, e))
			return -1;
		for (size_t i = 0; i * 8 + more <= size && i < CHUNK / 8; i++)
			if (is_poll(p, data + i)) {
				uint64_t address = run->address + at + i * 8;

				buf_push(&p->candidates, uint64_t, &address);
			}
	}
	return 0;
}

static int search_runs(struct polls *p, const struct buf *runs, struct err *e)
{
	cleanup_free uint64_t *data = xmalloc(CHUNK + sizeof(struct iocb));

	for (size_t i = 0; i < buf_count(runs, struct block_run); i++) {
		const struct block_run *run = buf_at(runs, struct block_run, i);

		if (run->read == memory_source_read && search_run(p, run, data, e))
			return -1;
	}
	return 0;
}

static int search_memory(struct polls *p, struct err *e)
{
	return search_runs(p, &p->d->runs, e) || search_runs(p, &p->d->copied_runs, e) ? -1 : 0;
}

/* What has ended may be under way again, and lie in memory that is not the process's alone. */
static void search_events(struct polls *p, const struct io_event *events, uint32_t count)
{
	uint64_t word[sizeof(struct iocb) / 8];

	for (uint32_t i = 0; i < count; i++)
		if (events[i].obj &&
			!tracee_read(p->d->process->mem_fd, events[i].obj, word, sizeof(word),
				NULL) &&
			is_poll(p, word))
			buf_push(&p->candidates, uint64_t, &(uint64_t){events[i].obj});
}

static int add_context(struct polls *p, const struct vma *v, struct err *e)
{
	int mem_fd = p->d->process->mem_fd;
	cleanup_free struct io_event *events = NULL;
	struct context c = {.at = v->start};

	if (aio_read_ring(mem_fd, v->start, v->end - v->start, &c.ring, e))
		return -1;
	events = xcalloc(c.ring.nr, sizeof(*events));
	if (tracee_read(mem_fd, aio_event_at(c.at, 0), events, c.ring.nr * sizeof(*events), e))
		return -1;
	search_events(p, events, c.ring.nr);
	for (uint32_t i = c.ring.head % c.ring.nr; i != c.ring.tail; i = (i + 1) % c.ring.nr)
		buf_push(&c.unread, struct io_event, &events[i]);
	buf_push(&p->contexts, struct context, &c);
	return 0;
}

/* ---- which of them are under way ---- */

static bool is_cancelled(const struct context *c, uint64_t request)
{
	for (size_t i = 0; i < buf_count(&c->cancelled, uint64_t); i++)
		if (*buf_at(&c->cancelled, uint64_t, i) == request)
			return true;
	return false;
}

/* One request can be under way several times. */
static int cancel_all(struct polls *p, struct context *c, uint64_t request, struct err *e)
{
	int64_t result;

	for (;;) {
		if (REMOTE_CALL(&p->remote, &result, e, SYS_io_cancel, c->at, request,
			    p->turn.scratch))
			return -1;
		if (result != -EINPROGRESS)
			return 0;
		buf_push(&c->cancelled, uint64_t, &request);
	}
}

static int cancel_some(struct polls *p, struct context *c, const uint64_t *requests,
	size_t count, struct err *e)
{
	struct remote_query q[REMOTE_QUERY_MAX];

	for (size_t i = 0; i < count; i++)
		q[i] = (struct remote_query){
			.nr = SYS_io_cancel, .args = {c->at, requests[i], p->turn.scratch}};
	if (remote_query(&p->remote, q, count, e))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (q[i].result != -EINPROGRESS)
			continue;
		buf_push(&c->cancelled, uint64_t, &requests[i]);
		if (cancel_all(p, c, requests[i], e))
			return -1;
	}
	return 0;
}

static int cancel_candidates(struct polls *p, struct context *c, struct err *e)
{
	size_t count = buf_count(&p->candidates, uint64_t);

	for (size_t i = 0; i < count; i += REMOTE_QUERY_MAX)
		if (cancel_some(p, c, buf_at(&p->candidates, uint64_t, i),
			    count - i < REMOTE_QUERY_MAX ? count - i : REMOTE_QUERY_MAX, e))
			return -1;
	return 0;
}

/* ---- as if nothing had been ---- */

/* The events from *seen on: events of cancelled requests are counted, others added to @others.
 */
static int look_for_polls(struct polls *p, struct context *c, uint32_t *seen, size_t *ours,
	struct buf *others, struct err *e)
{
	int mem_fd = p->d->process->mem_fd;
	struct image_aio_ring ring;
	struct io_event event;

	if (tracee_read(mem_fd, c->at, &ring, sizeof(ring), e))
		return -1;
	for (; *seen != ring.tail; *seen = (*seen + 1) % ring.nr) {
		if (tracee_read(mem_fd, aio_event_at(c->at, *seen), &event, sizeof(event), e))
			return -1;
		if (!event.res && is_cancelled(c, event.obj))
			++*ours;
		else
			buf_push(others, struct io_event, &event);
	}
	return 0;
}

static int await_events(struct polls *p, struct context *c, struct err *e)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	uint32_t seen = c->ring.tail;
	size_t ours = 0;

	for (;;) {
		if (look_for_polls(p, c, &seen, &ours, &c->unread, e))
			return -1;
		if (ours == buf_count(&c->cancelled, uint64_t))
			return 0;
		if (clock_ns(CLOCK_MONOTONIC) - begin > PATIENCE_NS)
			return err_set(e, 0,
				"requests of asynchronous I/O (IOCB_CMD_POLL) do not end");
		sleep_ns(100000);
	}
}

/* What was unread before, and what has come since, where the program expects it. */
static int put_unread(struct polls *p, const struct context *c, struct err *e)
{
	size_t count = buf_count(&c->unread, struct io_event);
	int mem_fd = p->d->process->mem_fd;

	for (size_t i = 0; i < count; i++)
		if (tracee_write(mem_fd, aio_event_at(c->at, (c->ring.head + i) % c->ring.nr),
			    buf_at(&c->unread, struct io_event, i), sizeof(struct io_event), e))
			return -1;
	return tracee_write(mem_fd, c->at + offsetof(struct image_aio_ring, head),
		&c->ring.head, sizeof(c->ring.head), e);
}

static uint32_t events_of(const struct context *c, uint64_t request)
{
	uint32_t found = 0;

	for (size_t i = 0; i < buf_count(&c->unread, struct io_event); i++)
		found += buf_at(&c->unread, struct io_event, i)->obj == request;
	return found;
}

static int issue_again(
	struct polls *p, const struct context *c, uint64_t request, struct err *e)
{
	struct image_aio_request saved = {
		.context = c->at, .request = request, .events = events_of(c, request)};
	int64_t done;

	if (tracee_write(p->turn.mem_fd, p->turn.scratch, &request, sizeof(request), e) ||
		REMOTE_CALL(&p->remote, &done, e, SYS_io_submit, c->at, 1, p->turn.scratch))
		return -1;
	if (done != 1)
		return err_set(e, -done,
			"a request of asynchronous I/O (IOCB_CMD_POLL, at %#" PRIx64
			") has been cancelled, and cannot be issued again",
			request);
	image_writer_note(p->d->writer, IMAGE_NOTE_AIO_REQUESTS, &saved, sizeof(saved));
	return 0;
}

/* All steps, whatever fails: the program is to resume. */
static int undo_cancel(struct polls *p, struct context *c, struct err *e)
{
	size_t count = buf_count(&c->cancelled, uint64_t);
	/* Of the full circle back to where the tail was. */
	uint32_t places = c->ring.nr - count % c->ring.nr;
	int failed;

	if (!count)
		return 0;
	image_writer_incompat(p->d->writer, IMAGE_INCOMPAT_AIO);
	failed = await_events(p, c, e) ||
		 aio_ring_advance(&p->turn, c->at, places,
			 buf_count(&c->unread, struct io_event), &c->unread, e) ||
		 put_unread(p, c, e);
	for (size_t i = 0; i < count; i++)
		failed |= issue_again(p, c, *buf_at(&c->cancelled, uint64_t, i),
				  failed ? NULL : e) != 0;
	return failed ? -1 : 0;
}

static int query_contexts(struct polls *p, struct err *e)
{
	int failed = aio_open_null(&p->turn, e);

	if (failed)
		return -1;
	for (size_t i = 0; i < buf_count(&p->contexts, struct context); i++) {
		struct context *c = buf_at(&p->contexts, struct context, i);

		failed |= cancel_candidates(p, c, failed ? NULL : e) != 0;
		failed |= undo_cancel(p, c, failed ? NULL : e) != 0;
	}
	return aio_close_null(&p->turn, failed ? NULL : e) || failed ? -1 : 0;
}

static int query_process(struct polls *p, struct err *e)
{
	struct process *process = p->d->process;
	int failed;

	if (!p->candidates.len)
		return 0;
	if (remote_begin(&p->remote, process, &process->threads[0], e))
		return -1;
	p->turn = (struct aio_ring_access){.remote = &p->remote,
		.mem_fd = process->mem_fd,
		.scratch = remote_scratch(&p->remote, AIO_SCRATCH, e)};
	failed = !p->turn.scratch || query_contexts(p, e);
	return remote_end(&p->remote, failed ? NULL : e) || failed ? -1 : 0;
}

static int find_polls(struct polls *p, struct err *e)
{
	const struct vma_list *l = &p->d->vmas;

	for (size_t i = 0; i < l->count; i++)
		if (dump_is_aio(&l->v[i])) {
			if (!p->contexts.len && (find_descriptors(p, e) || search_memory(p, e)))
				return -1;
			if (add_context(p, &l->v[i], e))
				return -1;
		}
	return 0;
}

int dump_aio_polls(struct dump *d, struct err *e)
{
	struct polls p = {.d = d};
	int failed = find_polls(&p, e) || query_process(&p, e);

	for (size_t i = 0; i < buf_count(&p.contexts, struct context); i++) {
		struct context *c = buf_at(&p.contexts, struct context, i);

		buf_free(&c->unread);
		buf_free(&c->cancelled);
	}
	buf_free(&p.contexts);
	buf_free(&p.candidates);
	buf_free(&p.open);
	return failed ? -1 : 0;
}
