/*
 * A thread may know rings by numbers of its own, of which the kernel tells nothing. The thread
 * is asked; which ring it is shows when an empty table is registered with it for a moment.
 */
#include <errno.h>
#include <inttypes.h>

#include "supervisor/fd/objects_dump.h"
#include "supervisor/target/remote_query.h"
#include "supervisor/uring/uring.h"

/* The ring behind slot @slot of the thread in @r. */
struct slot {
	struct fd_dump *d;
	struct remote *r;
	uint64_t scratch;
	unsigned slot;
	/* What all rings may be that have not been excluded. */
	bool has_files, has_buffers;
};

static bool may_be(const struct slot *s, const struct uring_seen *seen)
{
	return s->has_files == !!seen->files && s->has_buffers == !!seen->buffers;
}

/* The object of the ring that now has a table more, or of the only ring that has both tables; 0:
 * none. */
static int find_marked(const struct slot *s, uint32_t *object, struct err *e)
{
	bool both = s->has_files && s->has_buffers;

	*object = 0;
	for (size_t i = 0; i < buf_count(&s->d->rings, struct uring_seen); i++) {
		const struct uring_seen *seen = buf_at(&s->d->rings, struct uring_seen, i);
		struct uring_info info;
		int failed = uring_info_read(&info, seen->task, seen->fd, e);
		bool marked = !failed && (both ? may_be(s, seen)
					       : info.files != seen->files ||
								 info.buffers != seen->buffers);

		uring_info_release(&info);
		if (failed)
			return -1;
		if (marked && *object)
			return err_set(e, 0,
				"the kernel does not show which io_uring is registered with it "
				"as %u",
				s->slot);
		if (marked)
			*object = seen->object;
	}
	return 0;
}

static int ask_register(struct slot *s, unsigned opcode, uint64_t argument, unsigned count,
	int64_t *result, struct err *e)
{
	return REMOTE_CALL(s->r, result, e, SYS_io_uring_register, s->slot,
		opcode | URING_USE_REGISTERED_RING, argument, count);
}

/* *has: there is one already. */
static int try_table(struct slot *s, unsigned add, unsigned remove, bool *has, uint32_t *object,
	struct err *e)
{
	const struct io_uring_rsrc_register table = {
		.nr = 1, .flags = IORING_RSRC_REGISTER_SPARSE};
	int64_t result;
	int failed;

	if (tracee_write(s->r->process->mem_fd, s->scratch, &table, sizeof(table), e) ||
		ask_register(s, add, s->scratch, sizeof(table), &result, e))
		return -1;
	*has = result == -EBUSY;
	if (*has)
		return 0;
	if (result < 0)
		return err_set(e, -result, "cannot query the io_uring registered as %u%s",
			s->slot, result == -EINVAL ? " (Linux 6.12 or later can)" : "");
	failed = find_marked(s, object, e);
	return ask_register(s, remove, 0, 0, &result, e) || failed ? -1 : 0;
}

static int find_ring(struct slot *s, uint32_t *object, struct err *e)
{
	s->scratch = s->r->home.scratch ? s->r->home.scratch : remote_scratch(s->r, 4096, e);
	if (!s->scratch || try_table(s, IORING_REGISTER_FILES2, IORING_UNREGISTER_FILES,
				   &s->has_files, object, e))
		return -1;
	if (s->has_files && try_table(s, IORING_REGISTER_BUFFERS2, IORING_UNREGISTER_BUFFERS,
				    &s->has_buffers, object, e))
		return -1;
	return s->has_files && s->has_buffers ? find_marked(s, object, e) : 0;
}

static int add_slot(
	struct fd_dump *d, struct remote *r, struct thread *t, unsigned slot, struct err *e)
{
	struct slot s = {.d = d, .r = r, .slot = slot};
	uint32_t object = 0;

	if (find_ring(&s, &object, e))
		return -1;
	if (!object)
		return err_set(e, 0,
			"an io_uring is registered with it that no descriptor refers to, which "
			"is not supported");
	buf_printf(&fd_object_at(d, object)->bytes, "ring %d %u\n", t->vtid, slot);
	return 0;
}

/* By a call that does nothing. EBADF: nothing there; EINVAL: it has never used one, or the kernel is
 * one before 5.18, which registers none. */
static int add_slots(struct fd_dump *d, struct remote *r, struct thread *t, struct err *e)
{
	struct remote_query q[URING_REGISTERED_RINGS] = {0};

	for (unsigned i = 0; i < URING_REGISTERED_RINGS; i++) {
		q[i].nr = SYS_io_uring_enter;
		q[i].args[0] = i;
		q[i].args[3] = IORING_ENTER_REGISTERED_RING;
	}
	if (remote_query(r, q, URING_REGISTERED_RINGS, e))
		return -1;
	for (unsigned i = 0; i < URING_REGISTERED_RINGS; i++)
		if (q[i].result != -EBADF && q[i].result != -EINVAL && add_slot(d, r, t, i, e))
			return -1;
	return 0;
}

int uring_dump_registered(struct fd_dump *d, struct process *p, struct err *e)
{
	for (size_t i = 0; i < p->thread_count; i++) {
		struct thread *t = &p->threads[i];
		struct remote r;
		int failed;

		if (!t->uses_rings)
			continue;
		if (remote_begin(&r, p, t, e))
			return -1;
		failed = add_slots(d, &r, t, e);
		if (remote_end(&r, failed ? NULL : e) || failed)
			return err_prefix(e, "thread %d of process %d (%s)", t->tracee.tid,
				p->pid, p->comm);
	}
	return 0;
}
