/*
 * image_names.c - a hash table of lists, each in the order of the numbers.
 */
#include "ckpt/image_names.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/hash.h"
#include "lib/util.h"

enum named { OBJECTS, DESCRIPTIONS };

_Static_assert(IMAGE_NAMED_KINDS == DESCRIPTIONS + 1, "one index of each");

/* The name of element @i (from 0). */
static const char *name_of(const struct image *img, enum named what, size_t i)
{
	const struct image_description *x;
	const struct image_object *o;
	size_t count;

	if (what == OBJECTS) {
		o = image_note_array(img, IMAGE_NOTE_OBJECTS, struct image_object, &count);
		return image_string(img, o[i].name);
	}
	x = image_note_array(img, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	return image_string(img, x[i].path);
}

static size_t slot_of(const struct image_name_index *index, const char *name)
{
	return hash64(name, strlen(name)) & (index->slots - 1);
}

static void make_index(struct image *img, enum named what, size_t count)
{
	struct image_name_index *index = &img->names[what];

	if (!count)
		return;
	for (index->slots = 64; index->slots < count * 2;)
		index->slots *= 2;
	index->first = xcalloc(index->slots, sizeof(*index->first));
	index->next = xcalloc(count, sizeof(*index->next));
	for (size_t i = count; i--;) {
		uint32_t *first = &index->first[slot_of(index, name_of(img, what, i))];

		index->next[i] = *first;
		*first = i + 1;
	}
}

static uint32_t find_entry(
	const struct image *img, enum named what, const char *path, uint32_t after)
{
	const struct image_name_index *index = &img->names[what];
	uint32_t n;

	if (!index->slots)
		return 0;
	n = after ? index->next[after - 1] : index->first[slot_of(index, path)];
	while (n && strcmp(name_of(img, what, n - 1), path))
		n = index->next[n - 1];
	return n;
}

uint32_t image_object_named(const struct image *img, const char *path, uint32_t after)
{
	return find_entry(img, OBJECTS, path, after);
}

uint32_t image_description_named(const struct image *img, const char *path, uint32_t after)
{
	return find_entry(img, DESCRIPTIONS, path, after);
}

void image_names_make(struct image *img)
{
	make_index(img, OBJECTS,
		image_note_count(img, IMAGE_NOTE_OBJECTS, sizeof(struct image_object)));
	make_index(img, DESCRIPTIONS,
		image_note_count(
			img, IMAGE_NOTE_DESCRIPTIONS, sizeof(struct image_description)));
}

void image_names_free(struct image *img)
{
	for (int i = 0; i < IMAGE_NAMED_KINDS; i++) {
		free(img->names[i].first);
		free(img->names[i].next);
	}
}
