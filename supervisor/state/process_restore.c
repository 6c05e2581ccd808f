/*
 * A process into the plan of a new one, which the loader carries out from within: everything
 * but its memory (memory/memory_restore.c), its working directory and umask
 * (restore/child_before_exec.c) and registers (restore/registers_restore.c), in the order in which
 * it can be set. What other
 * files add comes in between: signals_restore.c, threads_restore.c, timers_restore.c, and at
 * the end, when nothing needs a privilege any more, credentials_restore.c.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "supervisor/state/membarrier.h"
#include "supervisor/state/restore_plan.h"

/* <asm/prctl.h> of kernel 5.16 */
#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_TILEDATA   18

/* <linux/prctl.h> of kernels 6.3 and 6.4 */
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif

static void add_mm(struct restore_plan *p)
{
	const struct image_process *ip = p->ip;
	struct prctl_mm_map map = {
		.start_code = ip->start_code,
		.end_code = ip->end_code,
		.start_data = ip->start_data,
		.end_data = ip->end_data,
		.start_brk = ip->start_brk,
		.brk = ip->brk,
		.start_stack = ip->start_stack,
		.arg_start = ip->arg_start,
		.arg_end = ip->arg_end,
		.env_start = ip->env_start,
		.env_end = ip->env_end,
		.exe_fd = p->fds->exe,
	};
	const void *auxv;
	uint64_t at;
	size_t size;

	auxv = image_note(p->img, IMAGE_NOTE_AUXV, 1, &size);
	map.auxv = (void *)plan_data(&p->plan, auxv, size);
	map.auxv_size = size;
	at = plan_data(&p->plan, &map, sizeof(map));
	BATCH_ADD(&p->rest, "set the memory layout", SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, at,
		sizeof(map));
}

static void add_close(struct restore_plan *p, int fd)
{
	if (fd >= 0)
		BATCH_ADD(&p->rest, "close a descriptor", SYS_close, fd);
}

static void add_descriptors(struct restore_plan *p)
{
	const struct image_fd *fd;
	size_t count;

	add_close(p, p->fds->zero);
	add_close(p, p->fds->exe);
	for (size_t i = 0; i < p->fds->sources; i++)
		add_close(p, restart_fd_source(p->fds, i));
	for (size_t i = 0; i < p->fds->modules; i++) {
		add_close(p, restart_fd_module(p->fds, i, false));
		add_close(p, restart_fd_module(p->fds, i, true));
	}
	for (size_t i = 0; i < p->fds->objects; i++)
		add_close(p, restart_fd_object(p->fds, i));
	fd = image_note_array(p->img, IMAGE_NOTE_FDS, struct image_fd, &count);
	for (size_t i = 0; i < count; i++)
		if (fd[i].cloexec)
			BATCH_ADD(&p->rest, "set close-on-exec", SYS_fcntl, fd[i].fd, F_SETFD,
				FD_CLOEXEC);
}

/* What is the memory's, not the process's. */
static void add_memory_settings(struct restore_plan *p)
{
	const struct image_process *ip = p->ip;
	struct batch_builder *b = &p->rest;

	if (ip->flags & IMAGE_PROCESS_LOCK_FUTURE)
		BATCH_ADD(b, "lock future memory", SYS_mlockall,
			MCL_FUTURE | (p->trial || ip->flags & IMAGE_PROCESS_LOCK_ONFAULT
						     ? MCL_ONFAULT
						     : 0));
	/* Bit 0, and from kernel 6.18 on the flags above it. */
	if (ip->thp_disable)
		BATCH_ADD(b, "disable huge pages", SYS_prctl, PR_SET_THP_DISABLE, 1,
			ip->thp_disable & ~1u);
	membarrier_plan(b, ip->membarrier);
}

static void add_prctls(struct restore_plan *p)
{
	const struct image_process *ip = p->ip;
	struct batch_builder *b = &p->rest;

	/* It may have been one for a while (restore/make_tree.c). */
	BATCH_ADD(b, "become subreaper, or not", SYS_prctl, PR_SET_CHILD_SUBREAPER,
		ip->child_subreaper);
	if (ip->xcomp_permission & 1u << XFEATURE_TILEDATA)
		BATCH_ADD(b, "use the tile registers", SYS_arch_prctl, ARCH_REQ_XCOMP_PERM,
			XFEATURE_TILEDATA);
}

/* What would be in the way of the calls before it. */
static void add_memory_rules(struct restore_plan *p)
{
	const struct image_process *ip = p->ip;

	/* It takes a privilege, and changes nothing that a program could see. */
	if (ip->memory_merge)
		BATCH_ADD(&p->rest, "merge memory", SYS_prctl, PR_SET_MEMORY_MERGE, 1)->check =
			BATCH_ANY;
	if (ip->mdwe)
		BATCH_ADD(&p->rest, "deny writable code", SYS_prctl, PR_SET_MDWE, ip->mdwe);
}

static void add_last(struct restore_plan *p)
{
	const struct image_process *ip = p->ip;
	const char *root = image_string(p->img, ip->root);

	/* The path is as seen before the change: it can be taken only once. */
	if (strcmp(root, "/") && !p->owned_elsewhere[IMAGE_SHARED_DIRECTORY])
		BATCH_ADD(&p->rest, "change the root directory", SYS_chroot,
			plan_string(&p->plan, root));
	restore_plan_pending(p, &p->rest, 0);
	restore_plan_itimers(p);
	BATCH_ADD(&p->rest, "set the personality", SYS_personality, ip->personality);
	if (!p->owned_elsewhere[IMAGE_SHARED_MEMORY])
		add_memory_rules(p);
}

static int check_image(const struct restore_plan *p, struct err *e)
{
	const struct image_process *ip = p->ip;
	const struct image_thread *t;
	size_t count, xstate;

	image_note(p->img, IMAGE_NOTE_XSTATE, 1, &xstate);
	t = image_note_array(p->img, IMAGE_NOTE_THREADS, struct image_thread, &count);
	if (!ip || !count || t[0].tid != ip->pid)
		return err_set(e, 0, "the image has no process or no threads");
	if (t[0].flags & IMAGE_THREAD_ENDED && count == 1)
		return err_set(e, 0, "the image has no thread that lives");
	for (size_t i = 0; i < count; i++)
		if (restore_check_thread(&t[i], xstate, e))
			return -1;
	return restore_check_credentials(p, e);
}

int restore_plan_process(struct restore_plan *p, struct err *e)
{
	const struct image_process *ip = p->ip;
	const struct image_thread *t;
	size_t count;

	if (check_image(p, e))
		return -1;
	if (!p->owned_elsewhere[IMAGE_SHARED_MEMORY]) {
		add_mm(p);
		add_memory_settings(p);
	}
	add_descriptors(p);
	add_prctls(p);
	restore_plan_signals(p);
	restore_plan_threads(p);
	for (size_t i = 0; i < p->fds->threads; i++)
		add_close(p, restart_fd_thread(p->fds, i));
	if (restore_plan_timers(p, e))
		return -1;
	add_last(p);
	t = image_note_array(p->img, IMAGE_NOTE_THREADS, struct image_thread, &count);
	restore_plan_thread(p, &p->rest, &t[0]);
	/* A change of user has reset it. Of several threads the last that changes its user does. */
	p->sets_dumpable = ip->dumpable == 1 && count == 1;
	if (p->sets_dumpable)
		BATCH_ADD(&p->rest, "become dumpable", SYS_prctl, PR_SET_DUMPABLE, 1);
	return 0;
}
