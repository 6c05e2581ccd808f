/*
 * descriptors_check.c - before a restart: the row of each description says whether it can be
 * made again here, and where not, which descriptor of which process that concerns.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/fd/fd.h"
#include "supervisor/fd/shm_file.h"
#include "supervisor/fd_kinds/saved_files_restore.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/fd_table/kind_table.h"

/* A descriptor that leads to description @index, for messages; -1 when none does. */
static int first_descriptor(const struct checkpoint *c, uint32_t index)
{
	for (size_t i = 0; i < c->process_count; i++) {
		const struct image_fd *fds;
		size_t count;

		fds = image_note_array(
			c->processes[i], IMAGE_NOTE_FDS, struct image_fd, &count);
		for (size_t k = 0; k < count; k++)
			if (fds[k].description == index)
				return fds[k].fd;
	}
	return -1;
}

static int check_all(struct fd_check *check, struct err *e)
{
	const struct image_description *x;
	size_t count;

	x = image_note_array(
		check->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	for (size_t i = 0; i < count; i++) {
		const struct fd_kind *kind = fd_kind_find(x[i].kind);

		check->index = i;
		check->fd = first_descriptor(check->checkpoint, i);
		if (!kind)
			return err_set(e, 0, "descriptor %d is of unknown kind %u", check->fd,
				x[i].kind);
		if (kind->check && kind->check(check, &x[i], e))
			return -1;
	}
	return 0;
}

static void say_nothing(const char *line)
{
}

int fd_restore_check(const struct checkpoint *c, const struct fd_restore_options *o,
	void (*notice)(const char *line), struct err *e)
{
	static const struct fd_restore_options look_only;
	struct fd_restore_options options = *o;
	struct fd_check check = {
		.checkpoint = c,
		.job = c->job,
		.options = &look_only,
		.notice = say_nothing,
	};

	/* Where it is there it has them in use. */
	if (!o->alive && fd_shm_files_check(c, e))
		return -1;
	/* No file is cut or put back before all are known to be good, and all of the image:
	 * with a block that turns out to be damaged later there would be neither the files as
	 * they were nor the program. */
	if ((o->rollback_files || fd_saved_needed(c->job)) && !o->alive &&
		(check_all(&check, e) || checkpoint_verify(c, e)))
		return -1;
	if (!o->alive && fd_saved_put_back(c->job, o, notice, e))
		return -1;
	options.files_are_back = true;
	check.options = &options;
	check.notice = notice;
	return check_all(&check, e);
}
