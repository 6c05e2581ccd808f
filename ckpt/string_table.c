/*
 * string_table.c - the strings, and a hash table of their offsets.
 */
#include "ckpt/string_table.h"

#include <string.h>

#include "ckpt/hash.h"

/* The slot that holds @s, or the free one where it belongs. */
static uint32_t *find_slot(const struct string_table *t, const char *s)
{
	size_t i = hash64(s, strlen(s)) & (t->slot_count - 1);

	while (t->slots[i] && strcmp((char *)t->text.data + t->slots[i], s))
		i = (i + 1) & (t->slot_count - 1);
	return &t->slots[i];
}

static void grow_table(struct string_table *t)
{
	cleanup_free uint32_t *old = t->slots;
	size_t old_count = t->slot_count;

	t->slot_count = old_count ? old_count * 2 : 64;
	t->slots = xcalloc(t->slot_count, sizeof(*t->slots));
	for (size_t i = 0; i < old_count; i++)
		if (old[i])
			*find_slot(t, (char *)t->text.data + old[i]) = old[i];
}

uint32_t string_table_add(struct string_table *t, const char *s)
{
	uint32_t *slot;

	if (!t->text.len)
		buf_add(&t->text, "", 1);
	if (!*s)
		return 0;
	if (t->used * 2 >= t->slot_count)
		grow_table(t);
	slot = find_slot(t, s);
	if (!*slot) {
		BUG_ON(t->text.len + strlen(s) >= UINT32_MAX);
		*slot = t->text.len;
		t->used++;
		buf_add(&t->text, s, strlen(s) + 1);
	}
	return *slot;
}

void string_table_free(struct string_table *t)
{
	buf_free(&t->text);
	free(t->slots);
	memset(t, 0, sizeof(*t));
}
