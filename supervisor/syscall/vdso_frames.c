/*
 * vdso_frames.c - searches the stacks of all threads for frames that lead there.
 */
#include "supervisor/syscall/vdso_frames.h"

#include <stddef.h>
#include <string.h>
#include <sys/ucontext.h>

#include "lib/util.h"
#include "supervisor/target/tracee.h"
#include "supervisor/target/x86_64.h"

/* How far up from the stack pointer frames are looked for. */
#define STACK_MAX (4ul << 20)

/* What the kernel puts on the stack for a handler (struct rt_sigframe): the address that the
 * handler returns to, then what it interrupted. */
struct frame {
	uint64_t restorer;
	ucontext_t context;
};

#define PC_OFFSET                                                                              \
	(offsetof(struct frame, context) + offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]))

struct search {
	int mem_fd;
	const struct image *img;
	const struct image_sigaction *actions;
	size_t action_count;
	uint64_t vdso, vdso_size;
};

static bool is_restorer(const struct search *s, uint64_t address)
{
	for (size_t i = 0; address && i < s->action_count; i++)
		if (s->actions[i].restorer == address)
			return true;
	return false;
}

/* What looks like a frame and is none would have to hold two such addresses by chance. */
static bool holds_frame(const struct search *s, const uint64_t *stack, size_t words)
{
	size_t pc = PC_OFFSET / sizeof(*stack);

	for (size_t i = 0; i + pc < words; i++)
		if (stack[i + pc] - s->vdso < s->vdso_size && is_restorer(s, stack[i]))
			return true;
	return false;
}

/* 1 when there is one in [@start, @end). */
static int search_range(const struct search *s, uint64_t start, uint64_t end, struct err *e)
{
	uint64_t size = end - start < STACK_MAX ? end - start : STACK_MAX;
	cleanup_free uint64_t *stack = xmalloc(size);

	if (tracee_read(s->mem_fd, start, stack, size, e))
		return -1;
	return holds_frame(s, stack, size / sizeof(*stack));
}

/* The end of the region that holds @address, 0 for none. */
static uint64_t region_end(const struct image *img, uint64_t address)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if (address >= g[i].start && address < g[i].end)
			return g[i].end;
	return 0;
}

static int check_thread(const struct search *s, const struct image_thread *t, struct err *e)
{
	struct user_regs_struct regs;
	uint64_t top, sp;
	int found = 0;

	memcpy(&regs, t->regs, sizeof(regs));
	sp = x86_64_stack(&regs) & ~7ul;
	top = region_end(s->img, sp);
	if (top)
		found = search_range(s, sp, top, e);
	if (!found && t->sigaltstack_size && region_end(s->img, t->sigaltstack_sp))
		found = search_range(
			s, t->sigaltstack_sp, t->sigaltstack_sp + t->sigaltstack_size, e);
	if (found <= 0)
		return found;
	return err_set(e, 0,
		"thread %d was stopped in a signal handler that has interrupted the vdso of "
		"another kernel; take the checkpoint again, or restart on the kernel it was "
		"taken on",
		t->tid);
}

int vdso_check_frames(int mem_fd, const struct image *img, struct err *e)
{
	struct search s = {.mem_fd = mem_fd, .img = img};
	const struct image_process *p;
	const struct image_thread *t;
	size_t count;

	p = image_note_array(img, IMAGE_NOTE_PROCESS, struct image_process, &count);
	s.vdso = p->vdso_start;
	s.vdso_size = p->vdso_size;
	s.actions = image_note_array(
		img, IMAGE_NOTE_SIGACTIONS, struct image_sigaction, &s.action_count);
	t = image_note_array(img, IMAGE_NOTE_THREADS, struct image_thread, &count);
	for (size_t i = 0; i < count; i++)
		if (!(t[i].flags & IMAGE_THREAD_ENDED) && check_thread(&s, &t[i], e))
			return -1;
	return 0;
}
