/*
 * memory/page_space.h - one address space whose pages are filled by the page server.
 */
#ifndef SUPERVISOR_MEMORY_PAGE_SPACE_H
#define SUPERVISOR_MEMORY_PAGE_SPACE_H

#include <sys/types.h>

#include "lib/err.h"
#include "supervisor/memory/uffd_anchor.h"
#include "supervisor/memory/lazy_ranges.h"
#include "supervisor/memory/lazy_missing.h"

struct page_space {
	int uffd;
	pid_t pid;             /* 0: of a child that one of the processes has made since */
	int pidfd;             /* of pid, or -1 */
	struct anchor *anchor; /* keeps uffd open, as number anchored; NULL: nothing does */
	int anchored;
	const struct image *img;
	struct missing missing;
	struct buf waiting;  /* uint64_t: pages that somebody waits for */
	struct buf unmapped; /* struct address_range: reported, and not looked at yet */
	uint64_t refused;    /* the page that the kernel does not find, */
	uint64_t since_ns;   /* and since when */
};

/* How an attempt to fill a page went. */
enum page_result {
	PAGE_FILLED,
	PAGE_CHANGING, /* mappings change: hear what the kernel has to say of it first */
	PAGE_GONE,     /* there is no such address space any more */
	PAGE_FAILED,   /* and @e says why */
};

void page_space_free(struct page_space *s);

/* The kernel has told that @start to @end was unmapped: what is there by now, is not. Until it is
 * clear, nothing is changed. */
void page_space_unmapped(struct page_space *s, uint64_t start, uint64_t end);

/* Fill all pages that are waited for. */
enum page_result page_space_serve(struct page_space *s, struct err *e);
/* Fill some that nobody has asked for. */
enum page_result page_space_prefetch(struct page_space *s, struct err *e);
/* Whether there is anything left to be filled. */
bool page_space_lacks(const struct page_space *s);
/* Whether it is still there. */
bool page_space_exists(const struct page_space *s);

#endif
