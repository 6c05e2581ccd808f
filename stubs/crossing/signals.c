/*
 * Signal handlers of the program, in a process that has a lower half.
 *
 * A handler may come while the thread is in the lower half, on its FS base; upper code there
 * would take the lower libc's thread for its own. So every handler is entered through
 * signals_entry (crossing.S) and signals_handler, which sees to the upper FS base and puts the
 * lower one back. The kernel is notified of it at the one place where the program's libc calls rt_sigaction, and handlers that
 * were set before the lower half came are taken over. The program sees its own handlers when it
 * asks.
 *
 * Nothing here may touch thread-local storage: it is built without stack protector.
 */
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "bringup/site.h"
#include "shared/raw.h"
#include "shared/address_windows.h"
#include "stubs/crossing/internal.h"

#define SIGNALS 65

/* Of linux/membarrier.h, which not every libc's headers come with. */
#define MEMBARRIER_SYNC_CORE          (1 << 5)
#define MEMBARRIER_REGISTER_SYNC_CORE (1 << 6)

_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RDX]) == CONTEXT_RDX, "");
_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RAX]) == CONTEXT_RAX, "");
_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]) == CONTEXT_RSP, "");
_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]) == CONTEXT_RIP, "");

/* As the kernel has it. */
struct action {
	void *handler;
	uint64_t flags;
	void *restorer;
	uint64_t mask;
};

typedef void handler_function(int, siginfo_t *, void *);

static struct action actions[SIGNALS];

HIDDEN site_entry signals_site;
HIDDEN int signals_hook(struct site_registers *r);

HIDDEN uint64_t signals_block(void)
{
	uint64_t all = ~0ul, old = 0;

	raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, &old, 8); /* cannot fail */
	return old;
}

HIDDEN void signals_restore(uint64_t mask)
{
	raw(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8); /* cannot fail */
}

/* crossing.S: what the kernel is told. */
extern HIDDEN char signals_entry[];
HIDDEN void signals_handler(int signal, siginfo_t *info, void *context);

static int64_t
	current_offset; /* of crossing_current from the upper FS base; 0: not known yet */

/* Where the record of the thread at @fs, an upper FS base, is kept. NULL: the thread has no storage of the
 * libc's, whose first word is its own address. */
static struct crossing_thread **current_at(uint64_t fs)
{
	if (!current_offset || !fs || *(uint64_t *)fs != fs)
		return NULL;
	return (struct crossing_thread **)(fs + current_offset);
}

/* The stack of the handler of @context, whose frame is at @frame, when it is an alternate one. */
static void note_signal_stack(
	struct crossing_thread *t, const ucontext_t *context, uint64_t frame)
{
	uint64_t stack = (uintptr_t)context->uc_stack.ss_sp, size = context->uc_stack.ss_size;

	if (frame - stack >= size)
		return;
	t->signal_stack_end = stack + size;
	t->signal_stack = stack;
}

/*
 * Call @handler, with the thread of @t, which may be NULL, on its upper FS base. In a child of fork that comes
 * back from the handler, the calls that were interrupted go on as natively; others get no lower half.
 */
static void call_handler(handler_function *handler, int signal, siginfo_t *info, void *context,
	struct crossing_thread *t)
{
	struct crossing_thread **current;
	struct crossing_entry *top = t ? t->top : NULL;
	struct crossing_head head;
	uint64_t stack, end;

	if (!top) {
		handler(signal, info, context);
		return;
	}
	head = t->head;
	stack = t->signal_stack;
	end = t->signal_stack_end;
	note_signal_stack(t, context, (uintptr_t)&stack);
	handler(signal, info, context);
	t->signal_stack = stack;
	t->signal_stack_end = end;
	if (t->top)
		return;
	t->head = head;
	t->top = top;
	current = current_at(head.upper_fs);
	if (current && *current == t)
		*current = NULL;
}

void signals_handler(int signal, siginfo_t *info, void *context)
{
	handler_function *handler =
		(handler_function *)__atomic_load_n(&actions[signal].handler, __ATOMIC_ACQUIRE);
	uint64_t fs = raw_read_fs();
	struct crossing_thread *t, **current;

	if (!in_lower_window(fs)) {
		current = current_at(fs);
		call_handler(handler, signal, info, context, current ? *current : NULL);
		return;
	}
	t = *(struct crossing_thread **)(fs + crossing_upper_slot_offset);
	if (!t)
		return; /* a thread of the lower half: only its libc's own signals come here */
	raw_write_fs(t->head.upper_fs);
	call_handler(handler, signal, info, context, t);
	raw_write_fs(fs);
}

/* The call itself. In a static program this code is among what is searched for sites, so
 * it must not look like one. */
static long rt_sigaction(int signal, const struct action *new, struct action *old)
{
	long nr = SYS_rt_sigaction ^ 0x1000;

	__asm__ volatile("xor $0x1000, %0" : "+r"(nr) : : "cc");
	return raw(nr, signal, new, old, 8);
}

static int is_function(const void *handler)
{
	return handler != (void *)SIG_DFL && handler != (void *)SIG_IGN;
}

/* rt_sigaction for signal @signal with ours in place of the program's handler. */
static long set_action(int signal, const struct action *new, struct action *old)
{
	struct action before = actions[signal], ours;
	long r;

	if (new) {
		ours = *new;
		if (is_function(new->handler)) {
			__atomic_store_n(
				&actions[signal].handler, new->handler, __ATOMIC_RELEASE);
			actions[signal] = *new;
			ours.handler = (void *)signals_entry;
			ours.flags |= SA_SIGINFO;
		}
	}
	r = rt_sigaction(signal, new ? &ours : NULL, old);
	if (raw_failed(r)) {
		actions[signal] = before;
	} else if (old && old->handler == (void *)signals_entry) {
		old->handler = before.handler;
		old->flags = (old->flags & ~(uint64_t)SA_SIGINFO) | (before.flags & SA_SIGINFO);
	}
	return r;
}

/* In place of rt_sigaction in the program's libc. A signal must not come while the lock is
 * held; all are blocked for the moment. */
HIDDEN int signals_hook(struct site_registers *r)
{
	int signal = r->rdi;
	const struct action *new = (struct action *)r->rsi;
	struct action *old = (struct action *)r->rdx, was;
	uint64_t mask;

	if (signal < 1 || signal >= SIGNALS || r->r10 != 8)
		return 0;
	mask = signals_block();
	raw_lock(&process_get()->actions_lock);
	r->nr = set_action(signal, new, old ? &was : NULL);
	raw_unlock(&process_get()->actions_lock);
	signals_restore(mask);
	if (old && !raw_failed(r->nr))
		*old = was;
	return 1;
}

/* ---- patching the libc while other threads run it ---- */

static int wants_sigaction(int nr)
{
	return nr == SYS_rt_sigaction;
}

/*
 * All threads of this process see what was written before they resume. Registering for it takes
 * 15 ms in a process with threads, and nothing in one without.
 */
static void synchronise_code(void)
{
	/* Kernels before 4.16 cannot; there, other threads are very unlikely to be at the site.
	 */
	raw(SYS_membarrier, MEMBARRIER_SYNC_CORE, 0, 0);
}

/* A thread that comes by meanwhile goes round in the jump to itself. */
static int patch_live(uint8_t *at, const uint8_t jump[5])
{
	uintptr_t page = (uintptr_t)at & ~4095ul;
	uint16_t first;

	if (raw_failed(raw(SYS_mprotect, page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)))
		return -1;
	raw(SYS_membarrier, MEMBARRIER_REGISTER_SYNC_CORE, 0, 0);
	__atomic_store_n((uint16_t *)at, 0xfeeb, __ATOMIC_SEQ_CST);
	synchronise_code();
	memcpy(at + 2, jump + 2, 3);
	synchronise_code();
	memcpy(&first, jump, 2);
	__atomic_store_n((uint16_t *)at, first, __ATOMIC_SEQ_CST);
	synchronise_code();
	/* Back to what it was; a failure leaves more rights than needed. */
	raw(SYS_mprotect, page, 8192, PROT_READ | PROT_EXEC);
	return 0;
}

/* A page for trampolines in reach of jumps from around @end. */
static int near_page(uintptr_t end, struct site_room *room)
{
	uintptr_t at = (end + 0xfffff) & ~0xffffful;

	for (int i = 0; i < 1500; i++, at += 0x100000) {
		long r = raw(SYS_mmap, at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (r == (long)at) {
			room->next = (uint8_t *)at;
			room->end = room->next + 4096;
			return 0;
		}
	}
	return -1;
}

/* Returns how many sites were patched, or -1. */
static int patch_segment(uint8_t *text, uint8_t *end)
{
	struct site_room room = {0};
	struct site site;
	int count = 0;

	for (const uint8_t *at = text; !site_find(at, end, wants_sigaction, &site); count++) {
		uint8_t *trampoline, jump[5];

		if (!room.next && near_page((uintptr_t)end, &room) < 0)
			return -1;
		trampoline = site_prepare(&site, signals_site, &room);
		if (!trampoline)
			return -1;
		site_jump(site.start, trampoline, jump);
		if (patch_live(site.start, jump) < 0)
			return -1;
		at = site_end(&site);
	}
	if (room.next) /* no more to come: no need to write there */
		raw(SYS_mprotect, (uintptr_t)room.next & ~4095ul, 4096, PROT_READ | PROT_EXEC);
	return count;
}

/* Libraries that call rt_sigaction themselves: the libc, and before glibc 2.34 the thread
 * library. */
static int has_sigaction(const struct dl_phdr_info *info)
{
	static const char *const names[] = {"/libc.so", "/libc-2.", "/libpthread", "/ld-musl"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(info->dlpi_name, names[i]))
			return 1;
	return 0;
}

/* A program without interpreter has its libc inside, or as much of it as it needs: there may be
 * no site, when it sets no handlers. */
static int is_static(const struct dl_phdr_info *info)
{
	if ((uintptr_t)info->dlpi_phdr != getauxval(AT_PHDR))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_INTERP)
			return 0;
	return 1;
}

/* *argument counts sites, and static programs. */
static int patch_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	int *total = argument;

	*total += is_static(info);
	if (!is_static(info) && !has_sigaction(info))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uint8_t *start = (uint8_t *)info->dlpi_addr + h->p_vaddr;
		int n;

		if (h->p_type != PT_LOAD || !(h->p_flags & PF_X))
			continue;
		n = patch_segment(start, start + h->p_filesz);
		if (n < 0)
			return 1;
		*total += n;
	}
	return 0;
}

static void take_over_handler(int signal)
{
	struct action action;

	if (raw_failed(rt_sigaction(signal, NULL, &action)) || !is_function(action.handler) ||
		action.handler == (void *)signals_entry)
		return;
	set_action(signal, &action, NULL); /* was accepted before */
}

HIDDEN int signals_take_over(void)
{
	static int done; /* a child of fork inherits patches and handlers */
	int total = 0;

	if (done)
		return 0;
	if (dl_iterate_phdr(patch_object, &total) || !total) {
		raw_complain(
			"no lower half: the program's libc sets handlers in an unknown way");
		return -1;
	}
	for (int signal = 1; signal < SIGNALS; signal++)
		take_over_handler(signal);
	current_offset = (char *)&crossing_current - (char *)raw_read_fs();
	done = 1;
	return 0;
}
