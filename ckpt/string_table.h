/*
 * string_table.h - the strings of an image: one after the other, each ended by NUL, equal ones
 * once. The empty string is at offset 0.
 */
#ifndef CKPT_STRING_TABLE_H
#define CKPT_STRING_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

/* All zero is a valid empty table. */
struct string_table {
	struct buf text;
	uint32_t *slots; /* offsets in text by hash, 0: free */
	size_t slot_count, used;
};

/* Offset of @s, which is added when it is new. */
uint32_t string_table_add(struct string_table *t, const char *s);
void string_table_free(struct string_table *t);

#endif
