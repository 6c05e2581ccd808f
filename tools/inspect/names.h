/*
 * names.h - words for the numbers in an image. Numbers that have none are shown as numbers.
 */
#ifndef TOOLS_INSPECT_NAMES_H
#define TOOLS_INSPECT_NAMES_H

#include <stdint.h>

#include "ckpt/image.h"
#include "lib/util.h"

/* "?" for what has no name. */
const char *name_tag(uint32_t tag);
const char *name_region_kind(uint32_t kind);
const char *name_object_kind(uint32_t kind);

/* "rw-" */
const char *name_protection(uint32_t prot, char out[4]);

/* Append the words of the region's flags and advice, with commas between. */
void name_region_flags(const struct image_region *r, struct buf *out);

/* Append the signals of @set, as "INT,TERM" or, when there are many, "all but KILL". */
void name_signals(uint64_t set, struct buf *out);

/* Append what the thread was doing: "running", "in nanosleep, 1.500 s left". */
void name_thread_state(const struct image_thread *t, struct buf *out);

#endif
