/*
 * What the new processes of a restart do in C, each in memory that nobody else uses meanwhile.
 * The first makes all that they have in common, and stops. The supervisor has it make the
 * others (make_tree.c), and then each runs creation_run_process(), or creation_run_zombie() where it is to be a
 * zombie: it is a copy of the first as it was when it stopped, so what it knows is consistent.
 *
 * A process that shares the memory of another runs none of this: it only makes the system calls
 * that the supervisor puts into it (newborn_call.h). Its descriptors and its working directory
 * are put in order by a proxy, a child of its own with which it shares these, but not the
 * memory.
 *
 * Of processes that share a table of descriptors, the first puts the descriptors of all to their
 * places, when the others need them no more.
 */
#include "supervisor/restore/newborn_main.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>

#include "supervisor/fd_kinds/pty.h"
#include "supervisor/restore/newborn_call.h"
#include "supervisor/restore/zombie_end.h"

/* ---- in the supervisor ---- */

static void collect_ids(struct creation *creation)
{
	for (size_t i = 0; i < creation_order_count(&creation->order); i++) {
		const struct creation_node *n = creation_order_at(&creation->order, i);

		buf_push(&creation->ids, pid_t, &n->pid);
		buf_push(&creation->ids, pid_t, &n->pgid);
		buf_push(&creation->ids, pid_t, &n->sid);
	}
	for (size_t i = 0; i < creation->c->process_count; i++) {
		const struct image_thread *t;
		size_t count;

		t = image_note_array(creation->c->processes[i], IMAGE_NOTE_THREADS,
			struct image_thread, &count);
		for (size_t k = 0; k < count; k++)
			buf_push(&creation->ids, pid_t, &t[k].tid);
	}
	qsort(creation->ids.data, buf_count(&creation->ids, pid_t), sizeof(pid_t),
		compare_ints);
}

/* One mapping for all: each that a process has is copied with each process. Behind the page for calls with @terminals
 * come the descriptors that each process has besides the program's. */
static int map_shared(struct creation *creation, size_t terminals, struct err *e)
{
	const struct checkpoint *c = creation->c;
	size_t size = align_up(sizeof(*creation->page) + terminals * sizeof(int),
		_Alignof(struct restart_fds));
	char *next;

	creation->page_size = size;
	for (size_t i = 0; i < c->process_count; i++)
		creation->page_size += restore_child_shared_size(c, i);
	creation->page = mmap(NULL, creation->page_size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (creation->page == MAP_FAILED) {
		creation->page = NULL;
		return err_set(e, errno, "cannot map shared memory");
	}
	creation->children = xcalloc(c->process_count, sizeof(*creation->children));
	next = (char *)creation->page + size;
	for (size_t i = 0; i < c->process_count; i++) {
		restore_child_init(&creation->children[i], c, i, next);
		creation->children[i].stays = creation_order_at(&creation->order, i)->stays;
		next += restore_child_shared_size(c, i);
	}
	return 0;
}

int creation_init(struct creation *creation, const struct checkpoint *c, struct err *e)
{
	const struct image_job_process *list;
	const struct image_sharing *sharing;
	size_t count, sharers;

	memset(creation, 0, sizeof(*creation));
	creation->c = c;
	creation->error_pipe[0] = creation->error_pipe[1] = -1;
	list = image_note_array(c->job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	sharing = image_note_array(c->job, IMAGE_NOTE_SHARING, struct image_sharing, &sharers);
	if (creation_order_plan(&creation->order, list, sharers ? sharing : NULL, count, e))
		return -1;
	collect_ids(creation);
	if (map_shared(creation, count, e))
		return -1;
	memcpy(creation->page->terminal_path, "/dev/tty", sizeof("/dev/tty"));
	return pipe2(creation->error_pipe, O_CLOEXEC)
		       ? err_set(e, errno, "cannot create a pipe")
		       : 0;
}

void creation_free(struct creation *creation)
{
	for (int i = 0; i < 2; i++)
		util_close(&creation->error_pipe[i]);
	if (creation->page)
		munmap(creation->page, creation->page_size);
	free(creation->children);
	buf_free(&creation->ids);
	creation_order_free(&creation->order);
}

pid_t creation_id_in_use(const struct creation *creation)
{
	for (size_t i = 0; i < buf_count(&creation->ids, pid_t); i++) {
		pid_t id = *buf_at(&creation->ids, pid_t, i);
		cleanup_free char *path = xasprintf("/proc/%d", id);

		if (id && (!access(path, F_OK) || !kill(-id, 0) || errno == EPERM))
			return id;
	}
	return 0;
}

bool creation_needs(const struct creation *creation, pid_t id)
{
	return bsearch(&id, creation->ids.data, buf_count(&creation->ids, pid_t), sizeof(pid_t),
		compare_ints);
}

int creation_error(struct creation *creation, struct err *e)
{
	util_close(&creation->error_pipe[1]);
	creation->error_pipe[1] = -1;
	if (read_all(creation->error_pipe[0], e, sizeof(*e), "the error pipe", NULL))
		return err_set(e, 0, "the new process ended early");
	return -1;
}

/* ---- in the new processes ---- */

/* The other end reads the error as one piece, or finds the pipe empty. */
static void __attribute__((noreturn)) fail_newborn(int error_fd, const struct err *e)
{
	(void)write_all(error_fd, e, sizeof(*e), "the error pipe", NULL);
	_exit(1);
}

static void prefix_process(const struct creation *creation, size_t node, struct err *e)
{
	if (node)
		err_prefix(e, "process %d (%s)", creation->order.list[node].pid,
			image_string(creation->c->job, creation->order.list[node].comm));
}

/* The last steps of a process that lives on: it puts its descriptors at their numbers, when nobody
 * else needs them any more, and executes its program. */
static int set_descriptors_and_execute(
	struct creation *creation, size_t node, int *error_fd, struct err *e)
{
	struct restore_child *child = &creation->children[node];
	bool follows = checkpoint_owner(creation->c, node, IMAGE_SHARED_FILES) != node;

	if (restore_child_enter(child, creation->fds, e))
		return -1;
	if (!follows &&
		restore_child_place(creation->children, node, creation->fds, error_fd, e))
		return -1;
	child->fds->placed = true;
	if (!child->stays)
		return restore_child_exec(child, e);
	if (restore_child_prepare_stop(follows, e))
		return -1;
	newborn_stop();
}

void creation_run_process(struct creation *creation, size_t node)
{
	struct err e = ERR_INIT;
	int error_fd = creation->error_pipe[1];

	/* That is what a proxy is for. */
	if (checkpoint_owner(creation->c, node, IMAGE_SHARED_MEMORY) != node)
		fd_restore_for_another(creation->fds);
	(void)set_descriptors_and_execute(creation, node, &error_fd, &e);
	prefix_process(creation, node, &e);
	fail_newborn(error_fd, &e);
}

void creation_run_zombie(struct creation *creation, size_t node)
{
	const struct image_job_process *entry = &creation->order.list[node];
	struct err e = ERR_INIT;

	if (creation->fd_options.alive)
		_exit(0);
	(void)restore_die(entry, image_string(creation->c->job, entry->comm), &e);
	prefix_process(creation, node, &e);
	fail_newborn(creation->error_pipe[1], &e);
}

/* Helpers are reaped by the processes that made them; zombies are left to the program. The signals that
 * report the ends are ignored, and not blocked, so that none stays pending. */
static void ignore_end_signals(const struct creation *creation)
{
	const struct image_sharing *sharing = creation->order.sharing;
	sigset_t set;

	for (size_t i = 0; sharing && i < creation->order.count; i++)
		if (sharing[i].exit_signal && sharing[i].exit_signal != SIGCHLD)
			/* SIGKILL and SIGSTOP cannot be, and do what they always do. */
			(void)sigaction(sharing[i].exit_signal,
				&(struct sigaction){.sa_handler = SIG_IGN}, NULL);

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	(void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Tell the supervisor the descriptors of terminals, as they were opened here and not in it. */
static void publish_terminals(struct creation *creation)
{
	for (size_t i = 0; i < creation->order.count; i++) {
		uint32_t terminal = creation->order.list[i].terminal;

		creation->page->terminal[i] =
			terminal ? fd_restore_terminal(creation->fds, terminal - 1) : -1;
	}
}

void creation_main(void *arg)
{
	static const int std[3] = {0, 1, 2};
	struct creation *creation = arg;
	struct err e = ERR_INIT;

	ignore_end_signals(creation);
	/* Exceeding RLIMIT_FSIZE is to be an error (EFBIG). The program's action is set later. */
	(void)sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	creation->fds = fd_restore_new(creation->c, &creation->fd_options, std, &e);
	if (!creation->fds)
		fail_newborn(creation->error_pipe[1], &e);
	/* Without randomisation new mappings would stand in the way of the stack's growth; the
	 * programs' own settings come back at the end. */
	if (personality(personality(0xffffffff) & ~ADDR_NO_RANDOMIZE) == -1) {
		err_set(&e, errno, "cannot set the personality");
		fail_newborn(creation->error_pipe[1], &e);
	}
	publish_terminals(creation);
	newborn_stop();
}
