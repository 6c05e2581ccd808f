/*
 * pagemap.h - which pages of a process hold something of its own.
 */
#ifndef SUPERVISOR_TARGET_PAGEMAP_H
#define SUPERVISOR_TARGET_PAGEMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "lib/procfs.h"
#include "lib/util.h"

enum page_kind {
	PAGES_OWN = 1, /* anonymous memory: present or swapped out, not the zero page */
	PAGES_GUARD,   /* made inaccessible by MADV_GUARD_INSTALL */
	PAGES_CLEAN,   /* as OWN, and protected: not written to since (target/dirty.h) */
};

struct page_run {
	uint64_t start, end;
	enum page_kind kind;
};

/* Open /proc/PID/pagemap; -1 on failure. */
int pagemap_open(pid_t pid, struct err *e);

/* Append to @runs (struct page_run) the runs of @v by address: of a private mapping of a file pages
 * that differ from the file, of anonymous memory pages that are not zero. Uses PAGEMAP_SCAN (kernel
 * 6.7), which skips what was never touched, or else reads the table. @watched: userfaultfd protects
 * pages there, and some may be CLEAN. */
int pagemap_scan(int fd, const struct vma *v, bool watched, struct buf *runs, struct err *e);

/* Protect the pages of @v, which userfaultfd watches, against being written to unseen: pages that are
 * in memory, and no huge pages, which would be split. 0 or -1, with errno. */
int pagemap_protect(int fd, const struct vma *v);

#endif
