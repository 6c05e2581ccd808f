/*
 * The process that fills memory while the program runs: its orders, what the kernel tells it, and its
 * loop.
 */
#include "supervisor/memory/page_server.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/passed_fds.h"
#include "lib/procfs.h"
#include "lib/test_hooks.h"
#include "supervisor/memory/page_space.h"

/* How long to wait for news while there is work that cannot be done yet. */
#define WAIT_MS 2
#define LOOK_MS 1000

struct server {
	const struct checkpoint *c;
	int control, keep;
	struct buf spaces; /* struct page_space */
	bool go;           /* the program runs, */
	bool orphaned;     /* and its supervisor does not */
};

static size_t count_spaces(const struct server *v)
{
	return buf_count(&v->spaces, struct page_space);
}

static struct page_space *space_at(struct server *v, size_t i)
{
	return buf_at(&v->spaces, struct page_space, i);
}

static void remove_space(struct server *v, size_t i)
{
	page_space_free(space_at(v, i));
	memmove(space_at(v, i), space_at(v, i + 1),
		(count_spaces(v) - i - 1) * sizeof(struct page_space));
	v->spaces.len -= sizeof(struct page_space);
}

/* ---- when it fails ---- */

static void report_failure(const struct server *v, const struct err *e)
{
	if (!v->orphaned && send(v->control, e, sizeof(*e), MSG_NOSIGNAL) == sizeof(*e))
		return;
	(void)dprintf(STDERR_FILENO, "trecr-restart: %s\n", e->msg);
}

static bool any_exists(struct server *v)
{
	for (size_t i = 0; i < count_spaces(v); i++)
		if (page_space_exists(space_at(v, i)))
			return true;
	return false;
}

/* The program ends. Its supervisor sees to that; without one, children that it has made since wait
 * for ever for their memory, which is better than to see zeros in its place. */
static void __attribute__((noreturn)) end_program(struct server *v, struct err *e)
{
	err_prefix(e, "the rest of the program's memory cannot be brought back, it is ended");
	report_failure(v, e);
	for (size_t i = 0; i < count_spaces(v); i++)
		if (v->go && space_at(v, i)->pidfd >= 0)
			(void)pidfd_send_signal(space_at(v, i)->pidfd, SIGKILL, NULL, 0);
	while (v->orphaned && any_exists(v))
		(void)poll(NULL, 0, LOOK_MS);
	_exit(1);
}

/* ---- orders ---- */

/* The descriptor waits in the socket: nobody reads it, and it is there until both ends are
 * closed. */
static void hold_descriptor(struct server *v, int fd)
{
	/* Of a full socket, only we hold the rest. */
	(void)passed_fds_send(v->keep, "", 1, &fd, 1, MSG_DONTWAIT);
}

static struct anchor *fetch_anchor(const struct page_server_order *order)
{
	cleanup_fd int pidfd = order->anchor < 0 ? -1 : pidfd_open(order->supervisor, 0);
	int ring = pidfd < 0 ? -1 : pidfd_getfd(pidfd, order->anchor, 0);

	return ring < 0 ? NULL : anchor_open(ring);
}

static void add_space(struct server *v, const struct page_server_order *order, int uffd)
{
	struct page_space s = {.uffd = uffd,
		.pid = order->pid,
		.pidfd = pidfd_open(order->pid, 0),
		.anchor = fetch_anchor(order),
		.img = v->c->processes[order->index]};
	cleanup_buf struct buf ranges = {0};

	lazy_list(s.img, &ranges);
	for (size_t i = 0; i < buf_count(&ranges, struct address_range); i++) {
		const struct address_range *r = buf_at(&ranges, struct address_range, i);

		missing_add(&s.missing, r->start, r->end, r->start);
	}
	s.anchored = anchor_hold(s.anchor, uffd);
	buf_push(&v->spaces, struct page_space, &s);
}

static void release_program(struct server *v)
{
	for (size_t i = 0; i < count_spaces(v); i++)
		hold_descriptor(v, space_at(v, i)->uffd);
	v->go = true;
	if (send(v->control, "", 1, MSG_NOSIGNAL) != 1)
		_exit(1); /* the restart has failed */
}

static void hear_order(struct server *v)
{
	struct page_server_order order;
	int fds[PASSED_FDS_MOST];
	size_t count;

	if (passed_fds_receive(v->control, &order, sizeof(order), fds, &count, 0) !=
		sizeof(order)) {
		if (!v->go)
			_exit(1);
		v->orphaned = true;
		return;
	}
	if (order.order == PAGE_SERVER_GO)
		release_program(v);
	else if (count)
		add_space(v, &order, fds[0]);
}

/* ---- what the kernel tells ---- */

/* What a child of @pid has not got, or not with its contents. */
static void leave_out(struct missing *m, pid_t pid)
{
	struct vma_list list;

	if (procfs_vmas(pid, &list, NULL))
		return; /* it has ended */
	for (size_t i = 0; i < list.count; i++)
		if (list.v[i].flags & (VMA_DONTFORK | VMA_WIPEONFORK))
			missing_cut(m, list.v[i].start, list.v[i].end);
	vma_list_free(&list);
}

static void add_child(struct server *v, size_t parent, int uffd)
{
	const struct page_space *from = space_at(v, parent);
	struct page_space s = {.uffd = uffd, .pidfd = -1, .img = from->img};

	/* First of all: until then we alone have it. */
	s.anchor = anchor_share(from->anchor);
	s.anchored = anchor_hold(s.anchor, uffd);
	s.missing = missing_copy(&from->missing);
	if (from->pid)
		leave_out(&s.missing, from->pid);
	hold_descriptor(v, uffd);
	buf_push(&v->spaces, struct page_space, &s);
}

static void take_message(struct server *v, size_t i, const struct uffd_msg *m)
{
	struct page_space *s = space_at(v, i);
	uint64_t page = m->arg.pagefault.address & ~(uint64_t)(IMAGE_BLOCK - 1);

	switch (m->event) {
	case UFFD_EVENT_PAGEFAULT:
		buf_push(&s->waiting, uint64_t, &page);
		break;
	case UFFD_EVENT_FORK:
		add_child(v, i, m->arg.fork.ufd);
		break;
	case UFFD_EVENT_REMAP:
		missing_move(&s->missing, m->arg.remap.from, m->arg.remap.to, m->arg.remap.len);
		break;
	case UFFD_EVENT_UNMAP:
		page_space_unmapped(s, m->arg.remove.start, m->arg.remove.end);
		break;
	case UFFD_EVENT_REMOVE:
		missing_cut(&s->missing, m->arg.remove.start, m->arg.remove.end);
		break;
	default:
		break;
	}
}

/* All that there is, before anything is filled: pages that are waited for come before changes of
 * mappings, and are refused until these have been read. */
static void hear_space(struct server *v, size_t i)
{
	struct err e = ERR_INIT;
	struct uffd_msg m;
	ssize_t n;

	while ((n = read(space_at(v, i)->uffd, &m, sizeof(m))) == sizeof(m))
		take_message(v, i, &m);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		err_set(&e, errno, "cannot read from a userfaultfd");
		end_program(v, &e);
	}
}

/* ---- the loop ---- */

static void wait_for_news(struct server *v, int ms)
{
	size_t count = count_spaces(v);
	cleanup_free struct pollfd *fds = xcalloc(count + 1, sizeof(*fds));

	fds[0] = (struct pollfd){.fd = v->orphaned ? -1 : v->control, .events = POLLIN};
	for (size_t i = 0; i < count; i++)
		fds[i + 1] = (struct pollfd){.fd = space_at(v, i)->uffd, .events = POLLIN};
	if (poll(fds, count + 1, ms) <= 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (fds[i + 1].revents)
			hear_space(v, i);
	if (fds[0].revents)
		hear_order(v);
}

static bool is_prefetching(const struct server *v)
{
	return v->go && !test_lazy_held();
}

/* One round for the address space: what is waited for, and else, unless *fetched says that it has been
 * done, a little of the rest. */
static enum page_result fill_some(
	struct server *v, struct page_space *s, bool *fetched, struct err *e)
{
	enum page_result r = page_space_serve(s, e);

	if (r != PAGE_FILLED || *fetched || !s->missing.pieces.len)
		return r;
	if (!is_prefetching(v))
		return page_space_exists(s) ? r : PAGE_GONE;
	*fetched = true;
	return page_space_prefetch(s, e);
}

/* All is there. What was registered is to be let go of: the program runs on, and keeps the ring. */
static void __attribute__((noreturn)) finish(struct server *v)
{
	for (size_t i = 0; i < count_spaces(v); i++)
		page_space_free(space_at(v, i));
	_exit(0);
}

/* Returns how long to wait before the next round. */
static int serve_round(struct server *v)
{
	bool fetched = false, lacks = false;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < count_spaces(v);) {
		enum page_result r = fill_some(v, space_at(v, i), &fetched, &e);

		if (r == PAGE_FAILED)
			end_program(v, &e);
		if (r == PAGE_GONE) {
			remove_space(v, i);
			continue;
		}
		lacks |= page_space_lacks(space_at(v, i));
		/* The next one first: some of it is fetched. */
		fetched &= r != PAGE_CHANGING;
		i++;
	}
	if (v->go && !lacks)
		finish(v);
	return fetched ? 0 : lacks && v->go ? WAIT_MS : -1;
}

void page_server(const struct checkpoint *c, int control, int keep)
{
	struct server v = {.c = c, .control = control, .keep = keep};

	for (;;)
		wait_for_news(&v, serve_round(&v));
}
