/*
 * thread_view.c - the view of threads: identifiers, states, signals, and registers.
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/user.h>

#include "tools/inspect/names.h"
#include "tools/inspect/text.h"
#include "tools/inspect/view.h"

/* Pending signals of thread @tid, or of the process (0). */
static uint64_t pending_of(const struct image *img, int32_t tid)
{
	const struct image_pending *p;
	uint64_t set = 0;
	size_t count;

	p = image_note_array(img, IMAGE_NOTE_PENDING, struct image_pending, &count);
	for (size_t i = 0; i < count; i++) {
		int32_t signal;

		memcpy(&signal, p[i].siginfo, sizeof(signal)); /* si_signo comes first */
		if (p[i].tid == tid && signal >= 1 && signal <= 64)
			set |= 1ull << (signal - 1);
	}
	return set;
}

static const char *signals_text(uint64_t set, struct buf *b)
{
	if (!set)
		return "-";
	name_signals(set, b);
	return text_of(b);
}

static void add_row(struct table *t, const struct image *img, const struct image_thread *thread)
{
	cleanup_buf struct buf state = {0}, blocked = {0}, pending = {0};
	struct user_regs_struct regs;

	memcpy(&regs, thread->regs, sizeof(regs));
	name_thread_state(thread, &state);
	table_cell(t, "%d", thread->tid);
	table_cell(t, "%s", (const char *)thread->comm);
	table_cell(t, "%s", text_of(&state));
	table_cell(t, "%#llx", regs.rip);
	table_cell(t, "%#llx", regs.rsp);
	table_cell(t, "%s", signals_text(pending_of(img, thread->tid), &pending));
	table_cell(t, "%s", signals_text(thread->sigmask, &blocked));
}

static void show_text(const struct checkpoint *c, size_t process, struct buf *out)
{
	static const char *const heads[] = {
		"TID", "NAME", "STATE", "RIP", "RSP", "PENDING", "BLOCKED"};
	const struct image *img = c->processes[process];
	cleanup_buf struct buf pending = {0};
	struct table t = {.columns = "rllrrll"};
	const struct image_thread *threads;
	size_t count;

	threads = image_note_array(img, IMAGE_NOTE_THREADS, struct image_thread, &count);
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_cell(&t, "%s", heads[i]);
	for (size_t i = 0; i < count; i++)
		add_row(&t, img, &threads[i]);
	table_end(&t, out);
	if (pending_of(img, 0))
		text_line(out, "  pending for the process: %s",
			signals_text(pending_of(img, 0), &pending));
}

static void registers_json(const struct image_thread *t, struct json *j)
{
	/* As in struct user_regs_struct. */
	static const char *const names[IMAGE_REGS] = {"r15", "r14", "r13", "r12", "rbp", "rbx",
		"r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip",
		"cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"};

	json_object(j, "registers");
	for (size_t i = 0; i < IMAGE_REGS; i++) {
		char value[TEXT_SIZE];

		snprintf(value, sizeof(value), "%#" PRIx64, t->regs[i]);
		json_text(j, names[i], value);
	}
	json_end(j);
}

static void signals_json(uint64_t set, const char *key, struct json *j)
{
	cleanup_buf struct buf text = {0};

	name_signals(set, &text);
	json_text(j, key, text_of(&text));
}

static void show_json(const struct checkpoint *c, size_t process, struct json *j)
{
	const struct image *img = c->processes[process];
	const struct image_thread *t;
	size_t count;

	t = image_note_array(img, IMAGE_NOTE_THREADS, struct image_thread, &count);
	json_array(j, "threads");
	for (size_t i = 0; i < count; i++) {
		cleanup_buf struct buf state = {0};

		name_thread_state(&t[i], &state);
		json_object(j, NULL);
		json_integer(j, "tid", t[i].tid);
		json_text(j, "name", (const char *)t[i].comm);
		json_text(j, "state", text_of(&state));
		signals_json(t[i].sigmask, "blocked", j);
		signals_json(pending_of(img, t[i].tid), "pending", j);
		registers_json(&t[i], j);
		json_end(j);
	}
	json_end(j);
	signals_json(pending_of(img, 0), "pending", j);
}

const struct view threads_view = {show_text, show_json};
