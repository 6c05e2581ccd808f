/*
 * What the new processes of a restart do in C, each in memory that nobody else uses meanwhile.
 * The first makes all that they have in common, and stops. The supervisor has it make the
 * others (tree_births.c), and then each runs birth_become(), or birth_die() where it is to be a
 * zombie: it is a copy of the first as it was when it stopped, so what it knows is consistent.
 *
 * A process that shares the memory of another runs none of this: it only makes the system calls
 * that the supervisor puts into it (birth_call.h). Its descriptors and its working directory
 * are put in order by an agent, a child of its own with which it shares these, but not the
 * memory.
 *
 * Of processes that share a table of descriptors, the first puts those of all to their places,
 * when the others need them no more.
 */
#include "supervisor/restore/birth.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>

#include "supervisor/restore/birth_call.h"
#include "supervisor/restore/zombie_end.h"

/* ---- in the supervisor ---- */

static void collect_ids(struct birth *b)
{
	for (size_t i = 0; i < birth_order_count(&b->order); i++) {
		const struct birth_node *n = birth_order_at(&b->order, i);

		buf_push(&b->ids, pid_t, &n->pid);
		buf_push(&b->ids, pid_t, &n->pgid);
		buf_push(&b->ids, pid_t, &n->sid);
	}
	for (size_t i = 0; i < b->c->process_count; i++) {
		const struct image_thread *t;
		size_t count;

		t = image_note_array(
			b->c->processes[i], IMAGE_NOTE_THREADS, struct image_thread, &count);
		for (size_t k = 0; k < count; k++)
			buf_push(&b->ids, pid_t, &t[k].tid);
	}
	qsort(b->ids.data, buf_count(&b->ids, pid_t), sizeof(pid_t), compare_ints);
}

int birth_init(struct birth *b, const struct checkpoint *c, struct err *e)
{
	const struct image_job_process *list;
	const struct image_sharing *sharing;
	size_t count, sharers;

	memset(b, 0, sizeof(*b));
	b->c = c;
	b->error_pipe[0] = b->error_pipe[1] = -1;
	list = image_note_array(c->job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	sharing = image_note_array(c->job, IMAGE_NOTE_SHARING, struct image_sharing, &sharers);
	if (birth_order_plan(&b->order, list, sharers ? sharing : NULL, count, e))
		return -1;
	collect_ids(b);
	b->children = xcalloc(c->process_count, sizeof(*b->children));
	for (size_t i = 0; i < c->process_count; i++)
		if (restore_child_init(&b->children[i], c, i, e))
			return -1;
	for (size_t i = 0; i < c->process_count; i++)
		b->children[i].stays = birth_order_at(&b->order, i)->stays;
	b->page_size = sizeof(*b->page) + count * sizeof(int);
	b->page = mmap(
		NULL, b->page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (b->page == MAP_FAILED) {
		b->page = NULL;
		return err_set(e, errno, "cannot map shared memory");
	}
	memcpy(b->page->terminal_path, "/dev/tty", sizeof("/dev/tty"));
	return pipe2(b->error_pipe, O_CLOEXEC) ? err_set(e, errno, "cannot create a pipe") : 0;
}

void birth_free(struct birth *b)
{
	for (int i = 0; i < 2; i++)
		util_close(&b->error_pipe[i]);
	for (size_t i = 0; b->children && i < b->c->process_count; i++)
		restore_child_free(&b->children[i]);
	if (b->page)
		munmap(b->page, b->page_size);
	free(b->children);
	buf_free(&b->ids);
	birth_order_free(&b->order);
}

pid_t birth_id_in_use(const struct birth *b)
{
	for (size_t i = 0; i < buf_count(&b->ids, pid_t); i++) {
		pid_t id = *buf_at(&b->ids, pid_t, i);
		cleanup_free char *path = xasprintf("/proc/%d", id);

		if (id && (!access(path, F_OK) || !kill(-id, 0) || errno == EPERM))
			return id;
	}
	return 0;
}

bool birth_needs(const struct birth *b, pid_t id)
{
	return bsearch(
		&id, b->ids.data, buf_count(&b->ids, pid_t), sizeof(pid_t), compare_ints);
}

int birth_error(struct birth *b, struct err *e)
{
	util_close(&b->error_pipe[1]);
	b->error_pipe[1] = -1;
	if (read_all(b->error_pipe[0], e, sizeof(*e), "the error pipe", NULL))
		return err_set(e, 0, "the new process ended early");
	return -1;
}

/* ---- in the new processes ---- */

/* The other end reads the error as one piece, or finds the pipe empty. */
static void __attribute__((noreturn)) fail(int error_fd, const struct err *e)
{
	(void)write_all(error_fd, e, sizeof(*e), "the error pipe", NULL);
	_exit(1);
}

static void prefix_process(const struct birth *b, size_t node, struct err *e)
{
	if (node)
		err_prefix(e, "process %d (%s)", b->order.list[node].pid,
			image_string(b->c->job, b->order.list[node].comm));
}

/* The last steps of a process that lives on: its descriptors, when nobody else needs them here
 * any more, and its program. */
static int become(struct birth *b, size_t node, int *error_fd, struct err *e)
{
	struct restore_child *child = &b->children[node];
	bool follows = checkpoint_owner(b->c, node, IMAGE_SHARED_FILES) != node;

	if (restore_child_enter(child, b->fds, e))
		return -1;
	if (!follows && restore_child_place(b->children, node, b->fds, error_fd, e))
		return -1;
	child->fds->placed = true;
	if (!child->stays)
		return restore_child_exec(child, e);
	if (restore_child_prepare_stop(child, follows, e))
		return -1;
	birth_stop();
}

void birth_become(struct birth *b, size_t node)
{
	struct err e = ERR_INIT;
	int error_fd = b->error_pipe[1];

	/* That is what an agent is for. */
	if (checkpoint_owner(b->c, node, IMAGE_SHARED_MEMORY) != node)
		fd_restore_for_another(b->fds);
	(void)become(b, node, &error_fd, &e);
	prefix_process(b, node, &e);
	fail(error_fd, &e);
}

void birth_die(struct birth *b, size_t node)
{
	const struct image_job_process *entry = &b->order.list[node];
	struct err e = ERR_INIT;

	if (b->fd_options.alive)
		_exit(0);
	(void)restore_die(entry, image_string(b->c->job, entry->comm), &e);
	prefix_process(b, node, &e);
	fail(b->error_pipe[1], &e);
}

/* The ends of helpers and zombies: their parents wait for them, and are told by a signal that
 * they ignore, as it is not blocked. */
static void settle_end_signals(const struct birth *b)
{
	const struct image_sharing *sharing = b->order.sharing;
	sigset_t set;

	for (size_t i = 0; sharing && i < b->order.count; i++)
		if (sharing[i].exit_signal && sharing[i].exit_signal != SIGCHLD)
			/* SIGKILL and SIGSTOP cannot be, and do what they always do. */
			(void)sigaction(sharing[i].exit_signal,
				&(struct sigaction){.sa_handler = SIG_IGN}, NULL);

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	(void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* For the supervisor, which does not have what has been made here. */
static void tell_terminals(struct birth *b)
{
	for (size_t i = 0; i < b->order.count; i++) {
		uint32_t terminal = b->order.list[i].terminal;

		b->page->terminal[i] =
			terminal ? fd_restore_terminal(b->fds, terminal - 1) : -1;
	}
}

void birth_main(void *arg)
{
	static const int std[3] = {0, 1, 2};
	struct birth *b = arg;
	struct err e = ERR_INIT;

	settle_end_signals(b);
	/* To be told of too large a file by an error. The program's action is set later. */
	(void)sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	b->fds = fd_restore_new(b->c, &b->fd_options, std, &e);
	if (!b->fds)
		fail(b->error_pipe[1], &e);
	/* Without randomisation new mappings would stand in the way of the stack's growth; the
	 * programs' own settings come back at the end. */
	if (personality(personality(0xffffffff) & ~ADDR_NO_RANDOMIZE) == -1) {
		err_set(&e, errno, "cannot set the personality");
		fail(b->error_pipe[1], &e);
	}
	tell_terminals(b);
	birth_stop();
}
