/* Threads of the upper half: their records, and the parked thread each borrows. */
#include <pthread.h>
#include <signal.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "shared/raw.h"
#include "shared/address_windows.h"
#include "stubs/crossing/internal.h"

__thread struct crossing_thread *crossing_current;
HIDDEN __thread uint32_t crossing_busy;
HIDDEN int64_t crossing_upper_slot_offset;

static pthread_key_t key;
static int have_key;

/* What the assembly takes: the thread, or NULL and the result of the call that is not made. */
struct outcome {
	struct crossing_thread *thread;
	long error;
};

HIDDEN struct outcome crossing_first(const void *slot);
HIDDEN struct outcome crossing_nested(struct crossing_thread *t, uint64_t sp, const void *slot);
HIDDEN long crossing_open_library(struct crossing_library *library);

/* The count within, as a handler of the program's would see it halfway. */
HIDDEN uint64_t busy_begin(void)
{
	uint64_t mask = signals_block();

	crossing_busy++;
	return mask;
}

HIDDEN void busy_end(uint64_t mask)
{
	crossing_busy--;
	signals_restore(mask);
}

uint64_t *crossing_thread_words(void)
{
	struct crossing_thread *t = crossing_current;

	return t && crossing_is_outermost(t) ? t->words : NULL;
}

/* No variable of thread-local storage is read by its name, as the compiler might do so on the other FS base, too. */
uint64_t *crossing_thread_told(void)
{
	static uint64_t none; /* of threads that have no record */
	uint64_t fs = raw_read_fs();
	int64_t offset = crossing_upper_slot_offset;
	struct crossing_thread *t;

	if (!in_lower_window(fs))
		__asm__("mov crossing_current@gottpoff(%%rip), %0" : "=r"(offset));
	t = *(struct crossing_thread **)(fs + offset);
	return t ? &t->told : &none;
}

static struct outcome refused_outcome(const void *slot)
{
	struct crossing_library *library = process_find_library(slot);

	return (struct outcome){NULL, library ? library->error : -1};
}

static void link_thread(struct crossing_thread *t)
{
	struct process *p = process_get();

	raw_lock(&p->threads_lock);
	t->next = p->threads;
	if (t->next)
		t->next->previous = t;
	p->threads = t;
	raw_unlock(&p->threads_lock);
}

/* In a child of fork the links are wiped, and the list is another. */
static void unlink_thread(struct crossing_thread *t)
{
	struct process *p = process_get();

	if (!t->self)
		return;
	raw_lock(&p->threads_lock);
	if (t->previous)
		t->previous->next = t->next;
	else
		p->threads = t->next;
	if (t->next)
		t->next->previous = t->previous;
	raw_unlock(&p->threads_lock);
}

static void give_back(struct crossing_thread *t)
{
	uint64_t mask = busy_begin();
	/* Not before: a restart in between would make it another thread's. */
	struct lower_parked *parked = t->parked;

	unlink_thread(t);
	if (crossing_current == t)
		crossing_current = NULL;
	if (parked) {
		*parked->upper_slot = NULL;
		raw_set_and_wake(&parked->leave, 1);
	}
	raw(SYS_munmap, t, sizeof(*t)); /* it is mapped: cannot fail */
	busy_end(mask);
}

/* Runs at the end of a thread. Other destructors may still call down (a runtime library's do),
 * so the thread is kept for all rounds but the last. */
static void thread_ends(void *argument)
{
	struct crossing_thread *t = argument;

	if (t->top && ++t->destructor_rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(key, t);
	else
		give_back(t);
}

HIDDEN void thread_make_key(void)
{
	if (!have_key)
		have_key = !pthread_key_create(&key, thread_ends);
}

static struct lower_parked *borrow_parked(struct lower_table *table)
{
	struct lower_parked *parked = NULL;

	for (int i = 0; i < LOWER_SPARES && !parked; i++)
		parked = __atomic_exchange_n(&table->spares[i], NULL, __ATOMIC_ACQ_REL);
	if (!parked) {
		process_request(table, LOWER_PARK, NULL, &parked);
		return parked;
	}
	__atomic_add_fetch(&table->bell, 1, __ATOMIC_RELEASE);
	raw_wake(&table->bell);
	return parked;
}

static struct crossing_thread *make_record(void)
{
	long at = raw(SYS_mmap, 0, sizeof(struct crossing_thread), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct crossing_thread *t = (struct crossing_thread *)at;

	if (raw_failed(at))
		return NULL;
	if (raw_failed(raw(SYS_madvise, t, 4096, MADV_WIPEONFORK))) {
		raw(SYS_munmap, t, sizeof(*t));
		return NULL;
	}
	t->self = t;
	t->base = t->top = t->entries;
	t->limit = t->entries + CROSSING_DEPTH;
	return t;
}

HIDDEN int thread_attach(struct crossing_thread *t, struct lower_table *table)
{
	t->parked = borrow_parked(table);
	if (!t->parked)
		return -1;
	t->head.lower_fs = t->parked->fs;
	*t->parked->upper_slot = t;
	return 0;
}

static struct crossing_thread *attach_thread(void)
{
	struct crossing_thread *t;

	if (crossing_current) { /* of the parent of fork */
		crossing_current = NULL;
		pthread_setspecific(key, NULL);
	}
	if (process_bring_up() < 0)
		return NULL;
	t = make_record();
	if (!t)
		return NULL;
	t->head.upper_fs = raw_read_fs();
	if (thread_attach(t, process_get()->table) < 0) {
		raw(SYS_munmap, t, sizeof(*t));
		return NULL;
	}
	link_thread(t);
	if (have_key) /* without, parked threads are never given back */
		pthread_setspecific(key, t);
	crossing_current = t;
	return t;
}

HIDDEN struct outcome crossing_first(const void *slot)
{
	uint64_t mask = busy_begin();
	struct crossing_thread *t = crossing_current;

	/* A handler may have come first, and this be a child that it has forked. */
	if (!t || !t->top)
		t = attach_thread();
	busy_end(mask);
	return t ? (struct outcome){t, 0} : refused_outcome(slot);
}

/* Whether @sp, of a caller, lies on an alternate signal stack. */
static int on_signal_stack(const struct crossing_thread *t, uint64_t sp)
{
	stack_t alternate;

	if (t->signal_stack)
		return sp - t->signal_stack <= t->signal_stack_end - t->signal_stack;
	/* Handlers that signals.c knows nothing of. */
	return raw_failed(raw(SYS_sigaltstack, 0, &alternate)) ||
	       alternate.ss_flags & SS_ONSTACK;
}

/*
 * Drop entries of calls that were left by longjmp: their frames lie below the caller's
 * stack pointer @sp, or on a signal stack that has been left. On a signal stack addresses
 * say nothing; nothing is dropped there. Handlers do not see it halfway: none of them drops
 * what is not left behind for this caller, too.
 */
static void drop_left_behind(struct crossing_thread *t, uint64_t sp)
{
	uint64_t stack = t->signal_stack, end = t->signal_stack_end;

	if (on_signal_stack(t, sp))
		return;
	while (t->top > t->base &&
		(t->top[-1].rsp <= sp || (stack && t->top[-1].rsp - stack <= end - stack)))
		t->top--;
	t->signal_stack = 0;
}

HIDDEN struct outcome crossing_nested(struct crossing_thread *t, uint64_t sp, const void *slot)
{
	if (!t->top) /* wiped by a fork */
		return crossing_first(slot);
	drop_left_behind(t, sp);
	if (t->top == t->limit) {
		raw_complain("calls nested too deeply");
		__builtin_trap();
	}
	return (struct outcome){t, 0};
}

HIDDEN long crossing_open_library(struct crossing_library *library)
{
	uint64_t mask = busy_begin();
	int r = process_open_library(library);

	busy_end(mask);
	return r < 0 ? library->error : 0;
}
