/* answers.h - what a thread has been told and need not ask again: its words in the record of
 * the crossing (answers.c, answers.inc). */
#ifndef STUBS_CUDA_QUERY_CACHE_H
#define STUBS_CUDA_QUERY_CACHE_H

#include "stubs/crossing/thread.h"

/* For the assembly. */
#define ANSWERS_CHANGES      0
#define ANSWERS_KEPT         8
#define ANSWERS_DEVICE       16
#define ANSWERS_CONTEXT      24
#define ANSWERS_STORED       48
#define ANSWERS_STORED_COUNT 4
#define ANSWER_VALUE         8
#define ANSWER_KEY           16
#define ANSWER_SIZE          24

#define ANSWERS_STEP 256 /* by which counts of changes grow */
#define ANSWERS_MAX  253 /* the largest that goes into one word with its stamp */

#ifndef __ASSEMBLER__
#include <stdint.h>

#include "stubs/library.h"

struct answer {
	uint64_t stamp; /* 0: none */
	void *value, *key;
};

struct answers {
	uint64_t changes;
	uint64_t kept;   /* grows with each: who sees it grow while he reads begins anew */
	uint64_t device; /* stamp + device */
	struct answer context;
	struct answer stored[ANSWERS_STORED_COUNT];
};

/* Behind the crossing, when a function without a name has returned: what was known of @t's
 * current context stays so if it is still the current one. Called from assembly. */
STUB_HIDDEN void answers_ask_below(struct crossing_thread *t);
#endif

#endif
