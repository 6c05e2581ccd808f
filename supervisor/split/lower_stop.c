/*
 * Where a thread of a process with a lower half is, and how it is stopped outside of it.
 *
 * A thread is inside while there is an entry on its side stack (stubs/crossing): a call into
 * the lower half, or a body of a stub that may hold what is the lower half's. Then the return
 * address of the outermost entry is led to a piece of code that makes a system call, and the
 * thread runs on: at that call it is outside. Should we die meanwhile, it resumes from there by
 * itself to where it was to return to.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "supervisor/split/lower_half.h"
#include "supervisor/target/x86_64.h"

/* 0 where there is nothing to be read. */
static uint64_t peek_word(const struct thread *t, uint64_t at)
{
	uint64_t v = 0;

	return lower_peek(t->tracee.pid, at, &v, sizeof(v)) ? 0 : v;
}

static int poke_word(const struct thread *t, uint64_t at, uint64_t v, struct err *e)
{
	struct iovec local = {&v, sizeof(v)}, remote = {(void *)at, sizeof(v)};

	if (process_vm_writev(t->tracee.pid, &local, 1, &remote, 1, 0) == sizeof(v))
		return 0;
	return err_set(e, errno, "cannot write memory of process %d", t->tracee.pid);
}

/* The thread's record, 0: none. */
static uint64_t find_record(
	const struct thread *t, const struct crossing_info *info, uint64_t fs)
{
	uint64_t at = fs + (in_lower_window(fs) ? info->slot_offset : info->current_offset);
	uint64_t record = peek_word(t, at);

	return record && peek_word(t, record + info->self_offset) == record ? record : 0;
}

struct stack {
	unsigned long start, end;
};

/* The mapping that @sp lies in; an empty one if none. */
static struct stack find_stack(pid_t pid, uint64_t sp)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", pid);
	cleanup_file FILE *maps = fopen(path, "re");
	struct stack s;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx ", &s.start, &s.end) == 2 && sp >= s.start &&
			sp < s.end)
			return s;
	return (struct stack){0};
}

/* How many entries are on the thread's side stack: -1, what is kept of it makes no sense. */
static int count_entries(const struct thread *t, const struct crossing_info *info,
	uint64_t record, struct err *e)
{
	uint64_t used =
		peek_word(t, record + info->top_offset) - (record + info->entries_offset);

	if (used % info->entry_size || used / info->entry_size > info->depth)
		return lower_damaged(t->tracee.pid, e);
	return used / info->entry_size;
}

/* Whether the thread is inside. Entries that longjmp has left behind do not count: their frames
 * lie below the stack pointer, on the same stack; the stack that a handler runs on says nothing
 * about the frames of others. -1 on failure. */
static int is_inside(const struct thread *t, const struct crossing_info *info, uint64_t record,
	const struct user_regs_struct *regs, struct err *e)
{
	uint64_t entries = record + info->entries_offset;
	int count = record ? count_entries(t, info, record, e) : 0;
	struct stack stack;

	if (count <= 0 || in_lower_window(regs->fs_base))
		return count < 0 ? -1 : count > 0;
	stack = find_stack(t->tracee.pid, regs->rsp);
	while (count-- > 0) {
		uint64_t entry = entries + count * info->entry_size;
		uint64_t frame = peek_word(t, entry + info->rsp_offset);

		if (frame > regs->rsp || frame - 8 < stack.start || frame - 8 >= stack.end)
			return true;
	}
	return false;
}

static int lead_to_trap(
	struct thread *t, const struct crossing_info *info, uint64_t record, struct err *e)
{
	uint64_t at = record + info->entries_offset + info->return_offset;
	uint64_t original;

	t->in_lower_half = true;
	if (lower_peek(t->tracee.pid, at, &original, sizeof(original)))
		return lower_damaged(t->tracee.pid, e);
	if (original == info->trap)
		return 0;
	return poke_word(t, record + info->original_offset, original, e) ||
			       poke_word(t, at, info->trap, e)
		       ? -1
		       : 0;
}

static int let_own_thread_go(struct process *p, struct thread *t, struct err *e)
{
	pid_t tid = t->tracee.tid;

	buf_push(&p->lower->tids, pid_t, &tid);
	return tracee_detach(&t->tracee, 0, e);
}

/* Threads of the lower half that sleep are let sleep. A thread that was made while its maker
 * was traced does not: it is stopped by us, and has to be let go. */
bool lower_sleeps(struct process *p, pid_t tid)
{
	cleanup_free char *path = NULL;
	cleanup_free char *text = NULL;
	struct proc_stat st;
	uint64_t sp;
	size_t len;
	char *space;

	if (!p->lower || procfs_stat(p->pid, tid, &st, NULL) || st.state == 't')
		return false;
	/* "NR ARGUMENT... SP PC\n", or "running" (man proc_pid_syscall). */
	path = xasprintf("/proc/%d/task/%d/syscall", p->pid, tid);
	if (read_file(path, &text, &len, NULL))
		return false;
	space = strrchr(text, ' ');
	if (!space)
		return false;
	*space = 0;
	space = strrchr(text, ' ');
	sp = space ? strtoull(space, NULL, 16) : 0;
	if (!in_lower_window(sp))
		return false;
	buf_push(&p->lower->tids, pid_t, &tid);
	return true;
}

static bool is_busy(const struct thread *t, const struct crossing_info *info, uint64_t fs)
{
	return !in_lower_window(fs) && (uint32_t)peek_word(t, fs + info->busy_offset);
}

/* Calls for threads of the lower half are made by it until nothing is left to be done there. */
static bool is_helper(const struct process *p, struct thread *t)
{
	cleanup_free char *status = NULL;

	if (!p->lower->helper || p->lower->drained)
		return false;
	status = procfs_status(t->tracee.pid, t->tracee.tid, NULL);
	return status && (pid_t)status_last_number(status, "NSpid") == p->lower->helper;
}

int lower_judge(struct process *p, struct thread *t, enum lower_verdict *verdict, struct err *e)
{
	const struct crossing_info *info = &p->lower->info;
	struct user_regs_struct regs;
	uint64_t record;
	int inside;

	if (tracee_get_regs(&t->tracee, &regs, e))
		return -1;
	if (in_lower_window(regs.rsp)) {
		*verdict = LOWER_OWN;
		return let_own_thread_go(p, t, e);
	}
	t->in_lower_half = false;
	t->helper = is_helper(p, t);
	record = find_record(t, info, regs.fs_base);
	*verdict = LOWER_RUNS;
	if (t->helper || is_busy(t, info, regs.fs_base))
		return tracee_continue(&t->tracee, 0, e);
	inside = is_inside(t, info, record, &regs, e);
	if (inside < 0)
		return -1;
	if (inside)
		return lead_to_trap(t, info, record, e) ||
				       tracee_continue_to_syscall(&t->tracee, 0, e)
			       ? -1
			       : 0;
	if (in_lower_window(regs.fs_base))
		return tracee_continue(&t->tracee, 0, e);
	*verdict = LOWER_FROZEN;
	return 0;
}

int lower_comes_out(struct process *p, struct thread *t, struct err *e)
{
	const struct crossing_info *info = &p->lower->info;
	struct user_regs_struct regs;
	uint64_t record, original;

	if (tracee_get_regs(&t->tracee, &regs, e))
		return -1;
	if (x86_64_pc(&regs) != info->trapped)
		return 0;
	record = find_record(t, info, regs.fs_base);
	if (!record || lower_peek(t->tracee.pid, record + info->original_offset, &original,
			       sizeof(original)))
		return err_set(e, 0, "thread %d of process %d has lost its record",
			t->tracee.tid, t->tracee.pid);
	/* The call is not made; see crossing.S for the result's place. */
	x86_64_end_syscall(&regs, regs.r10);
	x86_64_set_pc(&regs, original);
	t->in_lower_half = false;
	t->came_out = true;
	if (tracee_set_regs(&t->tracee, &regs, e) || tracee_interrupt(&t->tracee, e) ||
		tracee_continue(&t->tracee, 0, e))
		return -1;
	return 1;
}
