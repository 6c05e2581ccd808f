/*
 * No interface tells with what flags an io_uring has been made. But the kernel refuses some
 * calls by them before it looks at anything else, so that a call with a bad address shows which
 * way it goes and changes nothing (io_uring/register.c). Of other flags the program sees
 * nothing: IORING_SETUP_COOP_TASKRUN and the like are about speed.
 */
#include "supervisor/uring/uring_inspect.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/procfs.h"
#include "supervisor/target/remote.h"

/* No memory is there, with any kernel's settings. */
#define BAD_ADDRESS 1

/* No personality has this number: they are 16 bits wide. */
#define NO_PERSONALITY 0x10000

int uring_call_as(struct uring_look *u, struct thread *t, long nr, const uint64_t args[6],
	int64_t *result, struct err *e)
{
	struct remote r;
	int failed;

	if (remote_begin(&r, u->process, t, e))
		return -1;
	failed = remote_call(&r, nr, args, result, e);
	return remote_end(&r, failed ? NULL : e) || failed ? -1 : 0;
}

static int ask_as(struct uring_look *u, struct thread *t, unsigned opcode, uint64_t argument,
	unsigned count, int64_t *result, struct err *e)
{
	const uint64_t args[6] = {u->s->fd, opcode, argument, count};

	return uring_call_as(u, t, SYS_io_uring_register, args, result, e);
}

int uring_ask(struct uring_look *u, unsigned opcode, uint64_t argument, unsigned count,
	int64_t *result, struct err *e)
{
	if (u->issuer)
		return ask_as(u, u->issuer, opcode, argument, count, result, e);
	*result = syscall(SYS_io_uring_register, u->s->dup, opcode, argument, count);
	if (*result < 0)
		*result = -errno;
	return 0;
}

int uring_look_again(struct uring_look *u, struct err *e)
{
	uring_info_release(&u->info);
	return uring_info_read(&u->info, u->s->task, u->s->fd, e);
}

/* ---- who may use it ---- */

int uring_find_issuer(struct uring_look *u, struct err *e)
{
	int64_t result;

	if (syscall(SYS_io_uring_enter, u->s->dup, 0, 0, 0, NULL, 0) < 0 && errno == EBADFD)
		return err_set(e, 0,
			"it is not enabled yet (IORING_SETUP_R_DISABLED), which is not "
			"supported");
	if (uring_ask(u, IORING_UNREGISTER_PERSONALITY, 0, NO_PERSONALITY, &result, e))
		return -1;
	if (result == -EACCES)
		return err_set(e, 0,
			"it has restrictions (IORING_REGISTER_RESTRICTIONS), which are not "
			"supported");
	if (result != -EEXIST)
		return 0;
	for (size_t i = 0; i < u->process->thread_count; i++) {
		struct thread *t = &u->process->threads[i];

		if (ask_as(u, t, IORING_UNREGISTER_PERSONALITY, 0, NO_PERSONALITY, &result, e))
			return -1;
		if (result == -EEXIST)
			continue;
		u->issuer = t;
		return 0;
	}
	return err_set(e, 0,
		"the only thread that may use it (IORING_SETUP_SINGLE_ISSUER) has ended, or is "
		"of another process");
}

/* ---- its flags ---- */

/* Whether @text shows an entry of the queue, and at full size (SQE128, CQE32). */
static bool shows_entry(const char *text, const char *heading, const char *mark, bool *full)
{
	const char *p = strstr(text, heading), *end;

	p = p ? strchr(p + 1, '\n') : NULL;
	if (!p || p[1] != ' ')
		return false;
	end = strchr(p + 1, '\n');
	p = strstr(p, mark);
	*full = p && end && p < end;
	return true;
}

/* The text as it is while the last entry that the kernel has taken stands in the queue again:
 * it looks at its own counters only, and the program, which is stopped, at none. */
static int read_with_entry(struct uring_look *u, uint32_t *head, struct err *e)
{
	uint32_t before = __atomic_load_n(head, __ATOMIC_ACQUIRE);
	int failed;

	__atomic_store_n(head, before - 1, __ATOMIC_RELEASE);
	failed = uring_look_again(u, e);
	__atomic_store_n(head, before, __ATOMIC_RELEASE);
	return failed;
}

/* How much of a ring's memory the program has mapped at @offset, from the offsets 0 and
 * IORING_OFF_CQ_RING alike; 0: nothing. */
static uint64_t mapped_size(const struct uring_look *u, uint64_t offset)
{
	struct vma_list vmas = {0};
	uint64_t size = 0;

	if (procfs_maps(u->s->task, &vmas, NULL))
		return 0;
	for (size_t i = 0; i < vmas.count; i++) {
		const struct vma *v = &vmas.v[i];

		if (v->inode == u->s->st.st_ino && v->offset == offset &&
			!strcmp(v->name, "anon_inode:[io_uring]"))
			size = v->end - v->start;
	}
	vma_list_free(&vmas);
	return size;
}

/* Twice the size is two pages where once is one, but for the smallest: there the entries are
 * looked at. */
static int find_cqe_size(struct uring_look *u, uint32_t *head, struct err *e)
{
	uint64_t entries = u->info.cq_entries, array = u->info.sq_entries * 4ull;
	uint64_t small = align_up(64 + entries * 16 + array, 4096);
	bool full = false;

	if (align_up(64 + entries * 32, 4096) > small) {
		full = mapped_size(u, URING_OFF_SQ_RING) > small ||
		       mapped_size(u, URING_OFF_CQ_RING) > small;
	} else if (!shows_entry(u->info.text, "\nCQEs:", ", extra1:", &full)) {
		if (read_with_entry(u, head, e))
			return -1;
		(void)shows_entry(u->info.text, "\nCQEs:", ", extra1:", &full);
	}
	if (full)
		u->flags |= IORING_SETUP_CQE32;
	return 0;
}

static int find_sqe_size(struct uring_look *u, uint32_t *head, struct err *e)
{
	bool full = false;

	if (read_with_entry(u, head, e))
		return -1;
	/* Without an array the kernel shows no entries. */
	if (!shows_entry(u->info.text, "\nSQEs:", ", e0:", &full)) {
		u->flags |= IORING_SETUP_NO_SQARRAY;
		full = mapped_size(u, URING_OFF_SQES) >
		       align_up(u->info.sq_entries * 64ull, 4096);
	}
	if (full)
		u->flags |= IORING_SETUP_SQE128;
	return 0;
}

static int find_layout(struct uring_look *u, struct err *e)
{
	struct io_uring_params p = {0};
	cleanup_fd int other = ring_setup(0, 1, 2, &p, e);
	char *page;
	int failed;

	if (other < 0)
		return -1;
	page = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, u->s->dup, URING_OFF_SQ_RING);
	if (page == MAP_FAILED)
		return ring_refuse_map(errno, e);
	failed = find_sqe_size(u, (uint32_t *)(page + p.sq_off.head), e) ||
		 find_cqe_size(u, (uint32_t *)(page + p.cq_off.head), e);
	munmap(page, 4096);
	return failed ? -1 : uring_look_again(u, e);
}

static int find_ways(struct uring_look *u, struct err *e)
{
	int64_t napi, resize, eventfd;

	if (uring_ask(u, URING_REGISTER_NAPI, BAD_ADDRESS, 1, &napi, e) ||
		uring_ask(u, URING_REGISTER_RESIZE_RINGS, BAD_ADDRESS, 1, &resize, e) ||
		uring_ask(u, IORING_REGISTER_EVENTFD, BAD_ADDRESS, 1, &eventfd, e))
		return -1;
	u->has_eventfd = eventfd == -EBUSY;
	if (u->info.sq_thread > 0)
		u->flags |= IORING_SETUP_SQPOLL;
	if (napi == -EINVAL)
		u->flags |= IORING_SETUP_IOPOLL;
	if (!u->issuer)
		return 0;
	u->flags |= IORING_SETUP_SINGLE_ISSUER;
	/* A program that did not ask for the flag does not look at it. */
	if (resize == -EFAULT)
		u->flags |= IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
	return 0;
}

int uring_find_flags(struct uring_look *u, struct err *e)
{
	/* It continues behind a bad entry, of which a program is told in any case. */
	u->flags = IORING_SETUP_SUBMIT_ALL;
	if (find_ways(u, e) || find_layout(u, e))
		return -1;
	return ring_layout(&u->ring, u->flags, u->info.sq_entries, u->info.cq_entries, e) ||
			       ring_map(&u->ring, u->s->dup, e)
		       ? -1
		       : 0;
}
