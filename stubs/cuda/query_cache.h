/* query_cache.h - what a thread has been told and need not ask again: its words in the record
 * of the crossing (query_cache.c, query_cache.inc). */
#ifndef STUBS_CUDA_QUERY_CACHE_H
#define STUBS_CUDA_QUERY_CACHE_H

#include "stubs/crossing/thread.h"

/* For the assembly. */
#define QUERY_CACHE_GENERATION   0
#define QUERY_CACHE_UPDATES      8
#define QUERY_CACHE_DEVICE       16
#define QUERY_CACHE_CONTEXT      24
#define QUERY_CACHE_STORED       48
#define QUERY_CACHE_STORED_COUNT 4
#define ANSWER_VALUE             8
#define ANSWER_KEY               16
#define ANSWER_SIZE              24

#define QUERY_CACHE_STEP 256 /* by which generations grow */
#define QUERY_CACHE_MAX  253 /* the largest that goes into one word with its stamp */

#ifndef __ASSEMBLER__
#include <stdint.h>

#include "stubs/library.h"

struct answer {
	uint64_t stamp; /* 0: none */
	void *value, *key;
};

struct query_cache {
	uint64_t generation;
	uint64_t updates; /* how many: a reader that sees it grow while it reads begins anew */
	uint64_t device;  /* stamp + device */
	struct answer context;
	struct answer stored[QUERY_CACHE_STORED_COUNT];
	uint64_t being_stored; /* a bit for each answer, the context's first */
};

/* Behind the crossing, when a function without a name has returned: what was known of @t's
 * current context stays so if it is still the current one. Called from assembly. */
STUB_HIDDEN void query_cache_ask_driver(struct crossing_thread *t);
#endif

#endif
