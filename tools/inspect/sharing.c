/*
 * sharing.c - as text and as JSON.
 */
#include "tools/inspect/sharing.h"

static const char *const names[IMAGE_SHARED_KINDS] = {
	[IMAGE_SHARED_MEMORY] = "memory",
	[IMAGE_SHARED_FILES] = "descriptors",
	[IMAGE_SHARED_DIRECTORY] = "directories",
	[IMAGE_SHARED_SIGNALS] = "actions of signals",
};

int32_t sharing_owner(const struct checkpoint *c, size_t process, enum image_shared what)
{
	size_t owner = checkpoint_owner(c, process, what), count;
	const struct image_job_process *list;

	list = image_note_array(c->job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	return owner == process ? 0 : list[owner].pid;
}

void sharing_text(const struct checkpoint *c, size_t process, struct buf *out)
{
	const char *gap = "";

	for (int k = 0; k < IMAGE_SHARED_KINDS; k++) {
		int32_t owner = sharing_owner(c, process, k);

		if (!owner)
			continue;
		buf_printf(out, "%s%s in common with %d", gap, names[k], owner);
		gap = ", ";
	}
}

void sharing_json(const struct checkpoint *c, size_t process, struct json *j)
{
	bool open = false;

	for (int k = 0; k < IMAGE_SHARED_KINDS; k++) {
		int32_t owner = sharing_owner(c, process, k);

		if (!owner)
			continue;
		if (!open)
			json_object(j, "shares");
		open = true;
		json_integer(j, names[k], owner);
	}
	if (open)
		json_end(j);
}
