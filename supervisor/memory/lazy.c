/*
 * Memory that is filled later, as the supervisor sees it: the process that does so is started, told
 * of processes, and waited for.
 */
#include "supervisor/memory/lazy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/limits.h"
#include "lib/passed_fds.h"
#include "supervisor/memory/page_server.h"

#define ANSWER_MS 60000

struct lazy {
	pid_t pid;
	int control;
	int keep;  /* holds userfaultfds that are never received (page_server.c) */
	bool told; /* it has said why it failed */
};

static int set_up_uffd(int fd, struct err *e)
{
	struct uffdio_api api = {.api = UFFD_API, .features = PAGE_SERVER_FEATURES};

	if (!ioctl(fd, UFFDIO_API, &api))
		return 0;
	return err_set(e, errno,
		"--lazy needs a kernel that reports the program's forks and mappings by "
		"userfaultfd, and the privilege to get the reports (CAP_SYS_PTRACE, as root "
		"has "
		"outside of user namespaces)");
}

/* Faults of the kernel are to be served as well: so this is not for ordinary users. And as only
 * a process with CAP_SYS_PTRACE gets events for forks (userfaultfd_api() in fs/userfaultfd.c),
 * /dev/userfaultfd alone is not enough. */
int lazy_check(struct err *e)
{
	cleanup_fd int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return err_set(e, errno,
			"--lazy needs userfaultfd(2) for pages that the kernel touches, which "
			"only root may use (CAP_SYS_PTRACE outside of user namespaces)");
	return set_up_uffd(fd, e);
}

/* ---- the process ---- */

/* Nothing of what the supervisor holds: pipes, locks, a terminal. Signals to its group are not
 * for this process. */
static void __attribute__((noreturn)) serve(const struct checkpoint *c, int control, int keep)
{
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	cleanup_buf struct buf stay = {0};
	struct rlimit own;
	sigset_t all;

	sigfillset(&all);
	if (setsid() < 0 || sigprocmask(SIG_SETMASK, &all, NULL) ||
		prctl(PR_SET_NAME, "trecr-lazy") || null < 0 || dup2(null, 0) < 0 ||
		dup2(null, 1) < 0 || chdir("/"))
		_exit(1);
	for (int i = 0; i <= STDERR_FILENO; i++)
		buf_push(&stay, int, &i);
	buf_push(&stay, int, &control);
	buf_push(&stay, int, &keep);
	checkpoint_descriptors(c, &stay);
	if (close_all_except(&stay))
		_exit(1);
	limit_files_raise(&own); /* each child of the program takes one */
	page_server(c, control, keep);
}

static int make_sockets(int control[2], int keep[2], struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control))
		return err_set(e, errno, "cannot create a socket");
	if (!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keep))
		return 0;
	close(control[0]);
	close(control[1]);
	return err_set(e, errno, "cannot create a socket");
}

struct lazy *lazy_begin(const struct checkpoint *c, struct err *e)
{
	int control[2], keep[2];
	struct lazy *l;
	pid_t pid;

	if (make_sockets(control, keep, e))
		return NULL;
	pid = fork();
	if (!pid) {
		close(control[0]);
		close(keep[0]);
		serve(c, control[1], keep[1]);
	}
	close(control[1]);
	close(keep[1]);
	if (pid < 0) {
		limit_err(e, errno, SYS_fork, "cannot create the process that fills memory");
		close(control[0]);
		close(keep[0]);
		return NULL;
	}
	l = xcalloc(1, sizeof(*l));
	*l = (struct lazy){.pid = pid, .control = control[0], .keep = keep[0]};
	return l;
}

/* ---- during a restart ---- */

static int register_ranges(int uffd, const struct buf *ranges, struct err *e)
{
	for (size_t i = 0; i < buf_count(ranges, struct address_range); i++) {
		const struct address_range *r = buf_at(ranges, struct address_range, i);
		struct uffdio_register range = {
			.range = {.start = r->start, .len = r->end - r->start},
			.mode = UFFDIO_REGISTER_MODE_MISSING,
		};

		if (ioctl(uffd, UFFDIO_REGISTER, &range))
			return err_set(e, errno,
				"cannot register memory at %#lx to be filled later "
				"(userfaultfd)",
				(unsigned long)r->start);
	}
	return 0;
}

static int give_order(
	struct lazy *l, const struct page_server_order *order, int fd, struct err *e)
{
	if (passed_fds_send(l->control, order, sizeof(*order), &fd, fd >= 0, 0) ==
		sizeof(*order))
		return 0;
	return err_set(e, errno, "the process that fills memory (%d) has ended", l->pid);
}

int lazy_add(struct lazy *l, const struct lazy_process *p, struct err *e)
{
	const struct page_server_order order = {
		.order = PAGE_SERVER_ADD,
		.pid = p->pid,
		.index = p->index,
		.supervisor = getpid(),
		.anchor = p->anchor,
	};

	return set_up_uffd(p->uffd, e) || register_ranges(p->uffd, p->ranges, e) ||
			       give_order(l, &order, p->uffd, e)
		       ? -1
		       : 0;
}

int lazy_let_go(struct lazy *l, struct err *e)
{
	const struct page_server_order order = {.order = PAGE_SERVER_GO};
	struct pollfd p = {.fd = l->control, .events = POLLIN};
	struct err told;
	ssize_t n;

	if (give_order(l, &order, -1, e))
		return -1;
	n = poll(&p, 1, ANSWER_MS) == 1 ? recv(l->control, &told, sizeof(told), 0) : 0;
	if (n == 1)
		return 0;
	if (n == sizeof(told)) {
		*e = told;
		return -1;
	}
	return err_set(e, 0, "the process that fills memory (%d) was killed", l->pid);
}

/* ---- the end ---- */

void lazy_end(struct lazy *l)
{
	close(l->control);
	close(l->keep);
	free(l);
}

void lazy_abort(struct lazy *l)
{
	(void)kill(l->pid, SIGKILL); /* it may have ended */
	while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
		;
	lazy_end(l);
}

pid_t lazy_pid(const struct lazy *l)
{
	return l->pid;
}

bool lazy_failed(struct lazy *l, struct err *e)
{
	struct err told;

	if (l->told || recv(l->control, &told, sizeof(told), MSG_DONTWAIT) != sizeof(told))
		return false;
	l->told = true;
	*e = told;
	return true;
}

bool lazy_is_whole(struct lazy *l, int status, struct err *e)
{
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	if (!lazy_failed(l, e) && !l->told)
		err_set(e, 0,
			"the process that fills the program's memory (%d) was killed: the rest "
			"of the memory cannot be brought back, the program is ended",
			l->pid);
	return false;
}
