/*
 * memory/page_server.h - the process that fills memory while a program already uses it: who
 * touches a page that is missing waits (userfaultfd), and the rest comes in the background.
 */
#ifndef SUPERVISOR_MEMORY_PAGE_SERVER_H
#define SUPERVISOR_MEMORY_PAGE_SERVER_H

#include "ckpt/store.h"
#include "lib/err.h"
#include "supervisor/memory/lazy_ranges.h"

/* The events that the kernel is to report: all that make other pages missing. */
#define PAGE_SERVER_FEATURES                                                                   \
	(UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |      \
		UFFD_FEATURE_EVENT_UNMAP)

enum page_order {
	PAGE_SERVER_ADD, /* with a userfaultfd whose ranges have been registered */
	PAGE_SERVER_GO,  /* the program is about to run; to be answered by one byte */
};

/* What the supervisor says, one a packet. */
struct page_server_order {
	uint32_t order; /* enum page_order */
	int32_t pid;
	uint64_t index; /* of the process in the checkpoint */
	/* A descriptor of the supervisor's, of anchor_make(), or -1: io_urings cannot be sent (EINVAL). */
	int32_t supervisor, anchor;
};

/* Take orders from @control, a socket of packets, until all is filled. After PAGE_SERVER_GO its end
 * means that the supervisor has been killed; before, that the restart has failed. All
 * userfaultfds are anchored in the program, and sent to @keep, where the supervisor holds the other end. A failure is
 * told to the supervisor as a struct err. */
void __attribute__((noreturn)) page_server(const struct checkpoint *c, int control, int keep);

#endif
