/*
 * state/thread_settings_dump.h - what a thread has set for itself, apart from the call that asks for it: the first
 * thread of a process is asked for it together with all that the process is asked for.
 */
#ifndef SUPERVISOR_STATE_THREAD_SETTINGS_DUMP_H
#define SUPERVISOR_STATE_THREAD_SETTINGS_DUMP_H

#include "ckpt/image.h"
#include "supervisor/state/dump.h"

#define THREAD_QUERIES 16 /* at most */

struct thread_questions {
	struct remote_query list[THREAD_QUERIES];
	size_t count;
};

struct signal_stack {
	uint64_t sp;
	int32_t flags;
	uint32_t pad;
	uint64_t size;
};

/* What is asked of every thread, and what only of some: NULL then. The answers come to lie in here: it is not to be
 * copied. */
struct thread_settings {
	struct thread_questions questions;
	struct signal_stack stack;
	int32_t signal, tsc;
	struct remote_query *slack, *securebits, *memory_failure, *cpuid, *landlock, *rings;
	struct remote_query *speculation[IMAGE_SPECULATIONS];
};

/* Fill s->questions for @t; @s is zero before. Some of the answers come to lie in @it. */
int ask_thread_settings(struct dump *d, const struct thread *t, struct thread_settings *s,
	struct image_thread *it, struct err *e);
/* With all answers, in the bracket of the thread that has given them: into @it. */
int take_thread_settings(struct dump *d, struct remote *r, const struct thread_settings *s,
	struct image_thread *it, struct err *e);

#endif
