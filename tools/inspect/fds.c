/*
 * fds.c - the view of descriptors: a line for each, with what its kind shows.
 */
#include "supervisor/fd_table/descriptors.h"

#include <inttypes.h>

#include "supervisor/fd/fd.h"
#include "supervisor/fd_table/kind_table.h"
#include "tools/inspect/sharing.h"
#include "tools/inspect/text.h"
#include "tools/inspect/view.h"

/* The description that @fd leads to; that there is one was checked at opening. */
static const struct image_description *description_of(
	const struct checkpoint *c, const struct image_fd *fd)
{
	const struct image_description *x;
	size_t count;

	x = image_note_array(c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	BUG_ON(fd->description >= count);
	return &x[fd->description];
}

/* Of threads that have left the process's table. */
static void threads_text(const struct checkpoint *c, size_t process, struct buf *out)
{
	const struct image_description *x;
	const struct image_thread_fd *own;
	size_t count, all;

	own = image_note_array(
		c->processes[process], IMAGE_NOTE_THREAD_FDS, struct image_thread_fd, &count);
	x = image_note_array(c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &all);
	for (size_t i = 0; i < count; i++) {
		cleanup_buf struct buf what = {0};

		if (own[i].fd >= 0)
			fd_show(c->job, &x[own[i].description], &what);
		if (own[i].fd < 0)
			text_line(out, "  of thread %d alone:", own[i].tid);
		else
			text_line(out, "  %4d  %-7s  %s", own[i].fd,
				own[i].cloexec ? "cloexec" : "-", text_of(&what));
	}
}

static void show_text(const struct checkpoint *c, size_t process, struct buf *out)
{
	const struct image *img = c->processes[process];
	cleanup_free size_t *first = NULL; /* by description: index of its first user + 1 */
	struct table t = {.columns = "rll"};
	const struct image_fd *fds;
	size_t count, descriptions;

	if (sharing_owner(c, process, IMAGE_SHARED_FILES)) {
		text_line(out, "  those of process %d",
			sharing_owner(c, process, IMAGE_SHARED_FILES));
		return;
	}
	(void)image_note_array(
		c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &descriptions);
	first = xcalloc(descriptions, sizeof(*first));
	fds = image_note_array(img, IMAGE_NOTE_FDS, struct image_fd, &count);
	table_cell(&t, "FD");
	table_cell(&t, "FLAGS");
	table_cell(&t, "OPEN FILE");
	for (size_t i = 0; i < count; i++) {
		cleanup_buf struct buf what = {0};
		size_t *sharer = &first[fds[i].description];

		fd_show(c->job, description_of(c, &fds[i]), &what);
		if (*sharer)
			buf_printf(&what, " (shared with %d)", fds[*sharer - 1].fd);
		else
			*sharer = i + 1;
		table_cell(&t, "%d", fds[i].fd);
		table_cell(&t, fds[i].cloexec ? "cloexec" : "-");
		table_cell(&t, "%s", text_of(&what));
	}
	table_end(&t, out);
	threads_text(c, process, out);
}

static void description_json(
	const struct image *job, const struct image_description *x, struct json *j)
{
	const struct fd_kind *kind = fd_kind_find(x->kind);
	cleanup_buf struct buf what = {0};

	fd_show(job, x, &what);
	json_text(j, "kind", kind ? kind->name : "?");
	json_number(j, "open_flags", x->flags);
	json_number(j, "position", x->position);
	json_number(j, "size", x->size);
	json_text(j, "path", x->path ? image_string(job, x->path) : NULL);
	json_text(j, "text", text_of(&what));
}

static void show_json(const struct checkpoint *c, size_t process, struct json *j)
{
	const struct image *img = c->processes[process];
	const struct image_fd *fds;
	size_t count;

	fds = image_note_array(img, IMAGE_NOTE_FDS, struct image_fd, &count);
	json_array(j, "fds");
	for (size_t i = 0; i < count; i++) {
		json_object(j, NULL);
		json_integer(j, "fd", fds[i].fd);
		json_bool(j, "cloexec", fds[i].cloexec);
		json_number(j, "description", fds[i].description);
		description_json(c->job, description_of(c, &fds[i]), j);
		json_end(j);
	}
	json_end(j);
}

const struct view fds_view = {show_text, show_json};
