/* Orders to the lower half's agent (lower/agent.c): through memory of the lower half, and two
 * event descriptors of it that are borrowed. No thread of the program takes part.
 *
 * That memory, and those events, are the program's to spoil. So an order has been carried out
 * when the lower half says of this very order that it has; an event is but a reason to look. */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/split/lower_half.h"

/* How often a process is looked at whether it is still there. */
#define LOOK_MS 200

#define TABLE(field) (LOWER_SHARED + offsetof(struct lower_table, field))

static int no_answer(struct process *p, int error, struct err *e)
{
	return err_set(e, error, "cannot reach the lower half of process %d", p->pid);
}

static int read_table(struct process *p, uint64_t at, void *data, size_t size, struct err *e)
{
	return lower_peek(p->pid, at, data, size) ? no_answer(p, errno, e) : 0;
}

static int write_table(
	struct process *p, uint64_t at, const void *data, size_t size, struct err *e)
{
	struct iovec local = {(void *)data, size}, remote = {(void *)at, size};

	if (!size || process_vm_writev(p->pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	return no_answer(p, errno, e);
}

/* Reading from something else might take for ever. */
static bool is_event(int fd)
{
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", fd);
	cleanup_free char *what = read_link(path, NULL);

	return what && !strcmp(what, "anon_inode:[eventfd]");
}

static int borrow_event(struct process *p, int pidfd, int number, int *fd, struct err *e)
{
	*fd = syscall(SYS_pidfd_getfd, pidfd, number, 0);
	if (*fd < 0)
		return no_answer(p, errno, e);
	if (is_event(*fd))
		return 0;
	close(*fd);
	*fd = -1;
	return err_set(e, 0,
		"cannot reach the lower half of process %d: its descriptor %d is another file "
		"now",
		p->pid, number);
}

static int connect_once(struct process *p, struct err *e)
{
	struct lower_half *lower = p->lower;
	cleanup_fd int pidfd = -1;
	uint32_t size;
	int fds[2];

	if (lower->done_fd >= 0)
		return 0;
	if (read_table(p, TABLE(size), &size, sizeof(size), e) ||
		read_table(p, TABLE(order_fd), fds, sizeof(fds), e))
		return -1;
	if (size != sizeof(struct lower_table))
		return err_set(e, 0,
			"the lower half of process %d is of another build of trecr", p->pid);
	pidfd = syscall(SYS_pidfd_open, p->pid, 0);
	if (pidfd < 0)
		return no_answer(p, errno, e);
	if ((lower->order_fd < 0 && borrow_event(p, pidfd, fds[0], &lower->order_fd, e)) ||
		borrow_event(p, pidfd, fds[1], &lower->done_fd, e))
		return -1;
	return 0;
}

/* The threads that are traced stay behind as zombies, so that a pidfd would not tell. */
static bool has_ended(struct process *p)
{
	struct proc_stat st;

	return procfs_stat(p->pid, p->pid, &st, NULL) || st.state == 'Z' || st.state == 'X';
}

static int has_done(struct process *p, uint32_t number, struct err *e)
{
	uint32_t done;

	if (read_table(p, TABLE(order.done), &done, sizeof(done), e))
		return -1;
	return done == number;
}

/* The process runs while a snapshot of its memory is read: it may have executed another program, whose
 * lower half, if it has one, knows of none. */
static int check_snapshot(struct process *p, struct err *e)
{
	uint32_t snapshot = 0;

	if (!p->lower->has_snapshot ||
		(!lower_peek(p->pid, TABLE(snapshot), &snapshot, sizeof(snapshot)) &&
			snapshot == 1))
		return 0;
	return err_set(e, 0,
		"process %d has ended or executed another program while its GPU memory was "
		"being saved",
		p->pid);
}

/* How long to wait before the process is looked at again. */
static unsigned moment_ms(uint64_t deadline_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t left_ms = deadline_ns > now ? (deadline_ns - now) / 1000000 + 1 : 0;

	return left_ms < LOOK_MS ? left_ms : LOOK_MS;
}

/* Wait for an event, or a while. Somebody else may take it first, which is not waited for. */
static int await_event(struct process *p, unsigned ms, struct err *e)
{
	struct pollfd fd = {.fd = p->lower->done_fd, .events = POLLIN};
	uint64_t count;
	struct iovec data = {&count, sizeof(count)};

	if (poll(&fd, 1, ms) < 0 && errno != EINTR)
		return no_answer(p, errno, e);
	if (fd.revents & POLLIN && preadv2(fd.fd, &data, 1, -1, RWF_NOWAIT) < 0 &&
		errno != EAGAIN && errno != EINTR)
		return no_answer(p, errno, e);
	return 0;
}

/* When it cannot be told it does no harm, but for the work. */
static void tell_given_up(struct process *p, uint32_t number)
{
	(void)write_table(p, TABLE(order.given_up), &number, sizeof(number), NULL);
}

static const char *work_of(enum lower_request request)
{
	switch (request) {
	case LOWER_MESSAGES:
		return "the search for MPI messages under way";
	case LOWER_CONNECT:
		return "taking over the connection to an MPI launcher";
	case LOWER_REPLAY:
	case LOWER_REPLAY_REST:
	case LOWER_TRY:
		return "making GPU and MPI objects again";
	default:
		return "the GPU work";
	}
}

/* The lower half may die of what it was asked to do, and the process with it: that no
 * descriptor tells. */
static int look_until_done(struct process *p, enum lower_request request, uint32_t number,
	uint64_t deadline_ns, struct err *e)
{
	for (;;) {
		bool late = clock_ns(CLOCK_MONOTONIC) >= deadline_ns;
		int r = has_done(p, number, has_ended(p) ? NULL : e);

		if (r > 0)
			return 0;
		if (has_ended(p))
			return err_set(e, 0,
				"process %d has ended while its lower half was at work",
				p->pid);
		if (r < 0 || check_snapshot(p, e))
			return -1;
		if (late)
			return err_set(e, 0, "%s of process %d does not finish in time",
				work_of(request), p->pid);
		if (p->lower->look && p->lower->look(p->lower->look_arg, e))
			return -1;
		if (await_event(p, moment_ms(deadline_ns), e))
			return -1;
	}
}

static int await_done(struct process *p, enum lower_request request, uint32_t number,
	uint64_t deadline_ns, struct err *e)
{
	if (!look_until_done(p, request, number, deadline_ns, e))
		return 0;
	if (!has_ended(p))
		tell_given_up(p, number);
	return -1;
}

/* What the lower half says is for the user's terminal. */
static void make_printable(char *text, size_t size)
{
	text[size - 1] = 0;
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

static int finish_order(struct process *p, struct err *e)
{
	struct lower_order order;
	struct proc_stat st;

	if (read_table(p, TABLE(order), &order, offsetof(struct lower_order, transfers), e))
		return -1;
	if (!order.result)
		return 0;
	make_printable(order.failure, sizeof(order.failure));
	p->lower->restless = order.result == LOWER_RESTLESS;
	p->lower->pending = order.result == LOWER_PENDING;
	p->lower->no_room = order.result == LOWER_NO_ROOM;
	if (order.result == LOWER_UNABLE)
		__atomic_store_n(&p->lower->unable, true, __ATOMIC_RELAXED);
	return err_with(e,
		order.result == LOWER_AGAIN || p->lower->pending ? ERR_TRY_AGAIN : ERR_FINAL,
		"process %d (%s): %s", p->pid,
		procfs_stat(p->pid, p->pid, &st, NULL) ? "?" : st.comm, order.failure);
}

bool lower_is_busy(pid_t pid)
{
	uint32_t number, done;

	return !lower_peek(pid, TABLE(order.number), &number, sizeof(number)) &&
	       !lower_peek(pid, TABLE(order.done), &done, sizeof(done)) && done != number;
}

/* The number that the next order gets. */
static int next_number(struct process *p, uint32_t *number, struct err *e)
{
	uint32_t done;

	if (read_table(p, TABLE(order.number), number, sizeof(*number), e) ||
		read_table(p, TABLE(order.done), &done, sizeof(done), e))
		return -1;
	if (done != (*number)++)
		return err_with(e, ERR_TRY_AGAIN,
			"the lower half of process %d is still busy with an earlier request",
			p->pid);
	return 0;
}

static int send_order(struct process *p, uint32_t number, struct err *e)
{
	struct pollfd fd = {.fd = p->lower->order_fd, .events = POLLOUT};
	static const uint64_t one = 1;

	if (write_table(p, TABLE(order.number), &number, sizeof(number), e))
		return -1;
	/* An eventfd that takes no more has been written to often enough. */
	if (poll(&fd, 1, 0) == 1 && fd.revents & POLLOUT &&
		write(fd.fd, &one, sizeof(one)) != sizeof(one))
		return no_answer(p, errno, e);
	return 0;
}

int lower_order(struct process *p, enum lower_request request,
	const struct lower_transfer *transfers, unsigned count, uint64_t deadline_ns,
	struct err *e)
{
	uint32_t what = request, n = count, number;

	BUG_ON(count > LOWER_TRANSFERS);
	if (check_snapshot(p, e) || connect_once(p, e) || next_number(p, &number, e) ||
		write_table(p, TABLE(order.count), &n, sizeof(n), e) ||
		write_table(
			p, TABLE(order.transfers), transfers, count * sizeof(*transfers), e) ||
		write_table(p, TABLE(order.request), &what, sizeof(what), e) ||
		write_table(p, TABLE(order.patience_ns), &p->lower->patience_ns,
			sizeof(p->lower->patience_ns), e) ||
		write_table(p, TABLE(order.session), &p->lower->session,
			sizeof(p->lower->session), e) ||
		write_table(p, TABLE(order.gpu_choice), &p->lower->gpu_choice,
			sizeof(p->lower->gpu_choice), e) ||
		send_order(p, number, e))
		return -1;
	return await_done(p, request, number, deadline_ns, e) || finish_order(p, e) ? -1 : 0;
}

void lower_notices(struct process *p, void (*tell)(void *arg, char *line), void *arg)
{
	char text[LOWER_NOTICES], *rest = text, *line;

	if (read_table(p, TABLE(order.notices), text, sizeof(text), NULL))
		return;
	text[sizeof(text) - 1] = 0;
	while ((line = strsep(&rest, "\n"))) {
		make_printable(line, strlen(line) + 1);
		if (*line)
			tell(arg, line);
	}
}

int lower_agree(struct process *p, uint64_t deadline_ns, struct err *e)
{
	uint32_t imports;

	if (read_table(p, TABLE(imports), &imports, sizeof(imports), e))
		return -1;
	return imports ? lower_order(p, LOWER_AGREE, NULL, 0, deadline_ns, e) : 0;
}
