/*
 * process.c - finds the vdso and the namespaces of a process that has been frozen, and whether it may have
 * contexts of asynchronous I/O.
 */
#include "supervisor/target/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/target/x86_64.h"

/* A supervisor has been given what its kernel gives to all. */
static const char *why_no_vdso(void)
{
	return getauxval(AT_SYSINFO_EHDR)
		       ? "it has unmapped it, as valgrind does (run the program without that)"
		       : "this kernel gives programs none (start it without vdso=0)";
}

/* smaps would walk the page tables of the whole process for one address. */
static int read_map(struct process *p, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", p->task);
	cleanup_free char *text = NULL;
	char *line, *end = NULL;
	size_t size;

	if (read_file(path, &text, &size, e))
		return -1;
	p->may_have_aio = strstr(text, AIO_NAME);
	line = strstr(text, " [vdso]");
	while (line && line > text && line[-1] != '\n')
		line--;
	if (line) {
		p->vdso = strtoull(line, &end, 16);
		p->vdso_size = *end == '-' ? strtoull(end + 1, NULL, 16) - p->vdso : 0;
	}
	if (line && p->vdso_size)
		return 0;
	return err_set(e, 0,
		"process %d (%s) has no vdso, without which nothing can be run in it: %s",
		p->pid, p->comm, why_no_vdso());
}

/* By a thread that an earlier checkpoint has lost hold of, on its way home. */
static bool is_in_use(const struct process *p, uint64_t cave)
{
	for (size_t i = 0; i < p->thread_count; i++)
		if (x86_64_pc(&p->threads[i].regs) - cave < p->cave_room)
			return true;
	return false;
}

static bool is_in_our_namespace(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/ns/pid", pid);
	cleanup_free char *its = read_link(path, NULL);
	cleanup_free char *ours = read_link("/proc/self/ns/pid", NULL);

	return its && ours && !strcmp(its, ours);
}

int process_prepare(struct process *p, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/mem", p->task);
	cleanup_free uint8_t *vdso = NULL;
	size_t at;

	p->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (p->mem_fd < 0)
		return err_set(
			e, errno, "cannot open the memory of process %d (%s)", p->pid, p->comm);
	if (read_map(p, e))
		return -1;
	vdso = xmalloc(p->vdso_size);
	if (tracee_read(p->mem_fd, p->vdso, vdso, p->vdso_size, e))
		return err_prefix(e, "cannot examine process %d (%s)", p->pid, p->comm);
	at = x86_64_find_cave(vdso, p->vdso_size, &p->cave_room);
	if (!at)
		return err_set(e, 0, "the vdso of process %d (%s) has no room for trecr's code",
			p->pid, p->comm);
	if (is_in_use(p, p->vdso + at))
		return err_with(e, ERR_TRY_AGAIN,
			"process %d (%s) is still on its way back from a checkpoint that "
			"failed",
			p->pid, p->comm);
	p->cave = p->vdso + at;
	p->sees_us = is_in_our_namespace(p->task);
	return 0;
}

void process_free(struct process *p)
{
	if (p->mem_fd >= 0)
		close(p->mem_fd);
	if (p->lower)
		p->free_lower(p->lower);
	buf_free(&p->window);
	buf_free(&p->found);
	buf_free(&p->outside);
	for (size_t i = 0; i < p->thread_count; i++)
		free(p->threads[i].status);
	free(p->threads);
	free(p);
}

struct process *tree_find(const struct tree *tree, pid_t pid)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->processes[i]->pid == pid)
			return tree->processes[i];
	return NULL;
}

void tree_free(struct tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		process_free(tree->processes[i]);
	free(tree->processes);
	memset(tree, 0, sizeof(*tree));
}
