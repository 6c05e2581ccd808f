/* Pages that the kernel uses without waiting for them are read once, so that they come. */
#include "supervisor/memory/lazy_touch.h"

#include <linux/futex.h>
#include <sys/uio.h>

/* As the kernel follows no more of them (ROBUST_LIST_LIMIT). */
#define LOCKS_MAX 2048

/* What cannot be read now is none that the kernel could use later. */
static bool touch_memory(
	const struct new_process *np, uint64_t address, void *data, size_t size)
{
	struct iovec local = {data, size}, remote = {(void *)address, size};

	return process_vm_readv(np->process.pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* Entries of mutexes with priority inheritance have the lowest bit set. */
static void touch_locks(const struct new_process *np, uint64_t at)
{
	struct robust_list_head head = {0};
	uint64_t entry;
	uint32_t word;

	if (!at || !touch_memory(np, at, &head, sizeof(head)))
		return;
	entry = (uint64_t)head.list_op_pending & ~1ull;
	(void)touch_memory(np, entry + head.futex_offset, &word, sizeof(word));
	entry = (uint64_t)head.list.next;
	for (int i = 0; i < LOCKS_MAX && (entry & ~1ull) != at; i++) {
		entry &= ~1ull;
		(void)touch_memory(np, entry + head.futex_offset, &word, sizeof(word));
		if (!touch_memory(np, entry, &entry, sizeof(entry)))
			return;
	}
}

int lazy_touch(struct new_process *np)
{
	for (size_t i = 0; i < np->thread_count; i++) {
		const struct image_thread *t = &np->threads[i];
		uint32_t word;

		if (t->clear_child_tid)
			(void)touch_memory(np, t->clear_child_tid, &word, sizeof(word));
		touch_locks(np, t->robust_list);
	}
	return 0;
}
