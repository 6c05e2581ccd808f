/*
 * regions.c - the view of memory: a line for each region, with what is stored of it.
 */
#include <inttypes.h>

#include "tools/inspect/contents.h"
#include "tools/inspect/names.h"
#include "tools/inspect/sharing.h"
#include "tools/inspect/text.h"
#include "tools/inspect/view.h"

static bool has_offset(const struct image_region *r)
{
	return r->kind == IMAGE_REGION_FILE || r->kind == IMAGE_REGION_SHARED_FILE ||
	       r->kind == IMAGE_REGION_SHARED || r->kind == IMAGE_REGION_PRIVATE;
}

static void add_row(struct table *t, const struct image *img, const struct image_region *r)
{
	struct tally tally = contents_region_tally(img, r);
	cleanup_buf struct buf flags = {0};
	char prot[4], size[TEXT_SIZE], here[TEXT_SIZE], elsewhere[TEXT_SIZE];

	name_region_flags(r, &flags);
	table_cell(t, "%012" PRIx64 "-%012" PRIx64, r->start, r->end);
	table_cell(t, "%s", name_protection(r->prot, prot));
	table_cell(t, "%s", name_region_kind(r->kind));
	table_cell(t, "%s", text_bytes(r->end - r->start, size));
	table_cell(t, "%s", tally.here ? text_bytes(tally.here * IMAGE_BLOCK, here) : "-");
	table_cell(t, "%s",
		tally.elsewhere ? text_bytes(tally.elsewhere * IMAGE_BLOCK, elsewhere) : "-");
	table_cell(t, "%s", flags.len ? text_of(&flags) : "-");
	if (has_offset(r))
		table_cell(t, "%#" PRIx64, r->offset);
	else
		table_cell(t, "-");
	if (r->kind == IMAGE_REGION_SHARED || r->kind == IMAGE_REGION_PRIVATE)
		table_cell(t, "%s (object %u)", image_string(img, r->name), r->object);
	else
		table_cell(t, "%s", image_string(img, r->name));
}

static void show_text(const struct checkpoint *c, size_t process, struct buf *out)
{
	static const char *const heads[] = {"ADDRESSES", "PROT", "KIND", "SIZE", "STORED",
		"EARLIER", "FLAGS", "OFFSET", "NAME"};
	const struct image *img = c->processes[process];
	struct table t = {.columns = "lllrrrlrl"};
	const struct image_region *r;
	size_t count;

	if (sharing_owner(c, process, IMAGE_SHARED_MEMORY)) {
		text_line(out, "  that of process %d",
			sharing_owner(c, process, IMAGE_SHARED_MEMORY));
		return;
	}
	r = image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_cell(&t, "%s", heads[i]);
	for (size_t i = 0; i < count; i++)
		add_row(&t, img, &r[i]);
	table_end(&t, out);
}

static void show_region_json(
	const struct image *img, const struct image_region *r, struct json *j)
{
	struct tally tally = contents_region_tally(img, r);
	cleanup_buf struct buf flags = {0};
	char text[TEXT_SIZE], prot[4];

	name_region_flags(r, &flags);
	json_object(j, NULL);
	snprintf(text, sizeof(text), "%#" PRIx64, r->start);
	json_text(j, "start", text);
	snprintf(text, sizeof(text), "%#" PRIx64, r->end);
	json_text(j, "end", text);
	json_number(j, "size", r->end - r->start);
	json_text(j, "protection", name_protection(r->prot, prot));
	json_text(j, "tag", name_tag(r->tag));
	json_text(j, "kind", name_region_kind(r->kind));
	json_text(j, "flags", text_of(&flags));
	json_number(j, "offset", r->offset);
	json_number(j, "page_size", r->page_size);
	json_number(j, "stored_bytes", tally.here * IMAGE_BLOCK);
	json_number(j, "referenced_bytes", tally.elsewhere * IMAGE_BLOCK);
	if (r->object)
		json_number(j, "object", r->object);
	json_text(j, "name", image_string(img, r->name));
	json_end(j);
}

static void show_json(const struct checkpoint *c, size_t process, struct json *j)
{
	const struct image *img = c->processes[process];
	const struct image_region *r;
	size_t count;

	r = image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	json_array(j, "regions");
	for (size_t i = 0; i < count; i++)
		show_region_json(img, &r[i], j);
	json_end(j);
}

const struct view regions_view = {show_text, show_json};
