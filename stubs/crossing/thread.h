/*
 * thread.h - a thread of the upper half that crosses: shared by C and assembly, and by a
 * supervisor that freezes the process from outside (doc/split-process.md).
 */
#ifndef STUBS_CROSSING_THREAD_H
#define STUBS_CROSSING_THREAD_H

/* Offsets of struct crossing_thread for the assembly. */
#define THREAD_LOWER_FS     0
#define THREAD_UPPER_FS     8
#define THREAD_TOP          16
#define THREAD_ORIGINAL     24
#define THREAD_WORDS        32
#define THREAD_SIGNAL_STACK 224
#define THREAD_BASE         4096
#define THREAD_LIMIT        4104

#define CROSSING_WORDS 19

#define ENTRY_SIZE 24
#define ENTRY_RBX  8
#define ENTRY_RSP  16

/* Registers in what the kernel hands a handler (ucontext_t). */
#define CONTEXT_RDX 136
#define CONTEXT_RAX 144
#define CONTEXT_RSP 160
#define CONTEXT_RIP 168

/* Thunks there are: 16 bytes of code each. Programs that make functions as they run (closures
 * of interpreters) have many. */
#define CALLBACKS 8192
#define FUNCTIONS 1024

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

#include "shared/table.h"

/* What a call that is in the lower half has left in the upper one. */
struct crossing_entry {
	void *return_address;
	uint64_t rbx;
	uint64_t rsp; /* behind the return address, where stack arguments begin */
};

/* As a rule a thread needs a few, of one page. */
#define CROSSING_DEPTH 4000

/*
 * One per thread, in upper memory. The first page is wiped in a child of fork(2), which has no
 * lower half: there `top` is not `base`, and the crossing finds out.
 */
struct crossing_thread {
	struct crossing_head head;
	struct crossing_entry *top; /* the next free entry of the side stack */
	void *original; /* return address that crossing_trap stands for, from outside */
	uint64_t
		words[CROSSING_WORDS]; /* the stub of libcuda's own: stubs/cuda/query_cache.h */
	struct crossing_thread *self;
	struct lower_parked *parked;
	uint64_t destructor_rounds;
	struct crossing_thread *next, *previous; /* all of the process */
	/* The alternate signal stack that the innermost handler runs on, from its lowest address to its end; 0 when
	 * there is none. It is still here when the handler has left by longjmp. */
	uint64_t signal_stack, signal_stack_end;
	uint64_t told; /* crossing_thread_told() */
	uint8_t wiped[4096 - 96 - 8 * CROSSING_WORDS];

	struct crossing_entry *base; /* &entries[0] */
	struct crossing_entry *limit;
	struct crossing_entry entries[CROSSING_DEPTH];
};

_Static_assert(offsetof(struct crossing_thread, head.lower_fs) == THREAD_LOWER_FS, "");
_Static_assert(offsetof(struct crossing_thread, head.upper_fs) == THREAD_UPPER_FS, "");
_Static_assert(offsetof(struct crossing_thread, top) == THREAD_TOP, "");
_Static_assert(offsetof(struct crossing_thread, original) == THREAD_ORIGINAL, "");
_Static_assert(offsetof(struct crossing_thread, words) == THREAD_WORDS, "");
_Static_assert(offsetof(struct crossing_thread, signal_stack) == THREAD_SIGNAL_STACK, "");
_Static_assert(offsetof(struct crossing_thread, base) == THREAD_BASE, "");
_Static_assert(offsetof(struct crossing_thread, limit) == THREAD_LIMIT, "");
_Static_assert(sizeof(struct crossing_entry) == ENTRY_SIZE, "");

/* Of @t's calls that are under way the newest is the only one: it was not made by a signal
 * handler or a callback in the middle of another. */
static inline int crossing_is_outermost(const struct crossing_thread *t)
{
	return t->top == t->base + 1;
}
#endif

#endif
