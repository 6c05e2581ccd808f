/*
 * saved_directories_dump.c - each file there becomes an object of the image, with its contents, or without them
 * if it cannot be saved.
 */
#include "supervisor/fd_kinds/saved_directories_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/notices.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd/parent_directories.h"
#include "supervisor/fd_kinds/saved_files.h"
#include "supervisor/fd_kinds/saved_directories.h"

static bool mark_set(struct fd_dump *d, const char *path, const char *set)
{
	uint32_t number;

	fd_parents_dump(d, path);
	number = fd_object_named(d, image_writer_string(d->job, set));
	if (number) {
		fd_object_at(d, number)->o.flags |= IMAGE_FILE_SET;
		buf_push(&d->sets, uint32_t, &number);
	}
	return number;
}

void fd_saved_mark_set(struct fd_dump *d, const char *path, const char *set)
{
	(void)mark_set(d, path, set); /* none: it has been removed */
}

static void tell_not_own(const char *name, const struct stat *st)
{
	if (st->st_mode & S_IWOTH)
		notice_add("files in %s are not saved: everybody may write to it (chmod o-w "
			   "lets it be saved)",
			name);
	else
		notice_add("files in %s are not saved: it belongs to user %u, while trecr "
			   "runs as user %u (start trecr-run as the owner)",
			name, st->st_uid, geteuid());
}

/* What a restart goes by is the name without links, and what nobody else can put files into. */
static void mark_asked(struct fd_dump *d, const char *name)
{
	cleanup_free char *real = realpath(name, NULL);
	cleanup_free char *inside = real ? xasprintf("%s/", real) : NULL;
	struct stat st;

	if (!real)
		notice_add("files in %s are not saved: %s", name, strerror(errno));
	else if (stat(real, &st))
		notice_add("files in %s are not saved: %s", name, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		notice_add("files in %s are not saved: it is not a directory", name);
	else if (!fd_set_is_own(real, geteuid()))
		tell_not_own(name, &st);
	else if (!mark_set(d, inside, real))
		notice_add("files in %s are not saved: another program has removed it", name);
}

static void mark_all_asked(struct fd_dump *d)
{
	for (const char *one = NULL; (one = strings_next(d->save_directories, one));)
		mark_asked(d, one);
}

/* The image says only that the file is there and when it was changed (@st; NULL: not known), so that a
 * restart does not move it aside as one that was made later. */
static void add_name(struct fd_dump *d, const char *path, const struct stat *st)
{
	struct image_object *o;

	fd_saved_add(d, path, NULL, NULL);
	o = &fd_object_at(d, buf_count(&d->objects, struct fd_object))->o;
	o->flags = IMAGE_FILE_NOT_SAVED;
	if (st)
		o->args[0] = fd_saved_changed_at(st);
}

static bool is_in_set(const struct fd_dump *d, const char *path)
{
	for (size_t i = 0; i < buf_count(&d->sets, uint32_t); i++) {
		const struct fd_object *o = fd_object_at(d, *buf_at(&d->sets, uint32_t, i));

		if (o->o.flags & IMAGE_FILE_SET && !strncmp(path, o->link, strlen(o->link)) &&
			path[strlen(o->link)] == '/')
			return true;
	}
	return false;
}

static void tell_where_link_leads(const struct fd_dump *d, const char *path)
{
	cleanup_free char *real = realpath(path, NULL);
	struct stat st;

	if (!real || stat(real, &st) || is_in_set(d, real))
		return;
	if (S_ISDIR(st.st_mode))
		notice_add("of the files in %s only open ones are saved: a symbolic "
			   "link leads there",
			path);
	else if (S_ISREG(st.st_mode))
		notice_add("%s is saved as a symbolic link, without the file %s", path, real);
}

static void add_link(struct fd_dump *d, const struct fd_set_file *f)
{
	char target[PATH_MAX] = "";
	struct image_object *o;

	if (readlinkat(f->in, f->name, target, sizeof(target) - 1) <= 0)
		return; /* another program has replaced it */
	fd_parents_dump(d, f->path);
	fd_saved_add(d, f->path, NULL, NULL);
	o = &fd_object_at(d, buf_count(&d->objects, struct fd_object))->o;
	o->flags = IMAGE_FILE_LINK;
	o->args[0] = image_writer_string(d->job, target);
	o->args[1] = f->st.st_uid | (uint64_t)f->st.st_gid << 32;
	tell_where_link_leads(d, f->path);
}

/* A socket comes back with the program that has it: its file alone would be of no use. */
static void leave_special(struct fd_dump *d, const struct fd_set_file *f)
{
	mode_t mode = f->st.st_mode;

	if (!S_ISSOCK(mode))
		notice_add("%s is not saved: it is a %s", f->path,
			S_ISFIFO(mode) ? "FIFO" : "device");
	add_name(d, f->path, NULL);
}

static int add_one_of_set(void *arg, const struct fd_set_file *f, struct err *e)
{
	struct fd_dump *d = arg;
	const char *path = f->path;
	uint32_t added = fd_object_named(d, image_writer_string(d->job, path));

	if (added) {
		fd_object_at(d, added)->o.flags &= ~IMAGE_FILE_IF_MISSING;
	} else if (!S_ISREG(f->st.st_mode) && !S_ISLNK(f->st.st_mode)) {
		leave_special(d, f);
	} else if (S_ISREG(f->st.st_mode) && !fd_saved_is_small(d, path, &f->st)) {
		add_name(d, path, &f->st);
	} else if (fd_saved_check_room(path)) {
		fd_saved_tell_no_room(path);
		add_name(d, path, &f->st);
	} else if (S_ISLNK(f->st.st_mode)) {
		add_link(d, f);
	} else if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS)) {
		notice_add("%s is not saved: %s", path, strerror(errno));
		add_name(d, path, &f->st);
	} else {
		fd_saved_add(d, path, path, &f->st);
	}
	return 0;
}

/* As its files are not known, a restart moves none of them aside. */
static void skip_directory(void *arg, const char *path, const char *why)
{
	struct fd_dump *d = arg;
	uint32_t added = fd_object_named(d, image_writer_string(d->job, path));
	struct fd_object *o = added ? fd_object_at(d, added) : NULL;

	notice_add("of the files in %s only open ones are saved: %s", path, why);
	if (!o)
		add_name(d, path, NULL);
	else if (o->o.flags & IMAGE_FILE_DIRECTORY)
		o->o.flags = (o->o.flags | IMAGE_FILE_NOT_SAVED) & ~IMAGE_FILE_SET;
}

/* Some servers do not start without directories in which there is nothing yet. One that has no name for the kernel, as it
 * is below too many others, is not to be taken for one that came later. */
static bool add_directory_of_set(void *arg, const struct fd_set_file *f)
{
	struct fd_dump *d = arg;
	cleanup_free char *inside = xasprintf("%s/", f->path);
	struct stat st;

	fd_parents_dump(d, inside);
	if (fd_object_named(d, image_writer_string(d->job, f->path)))
		return true;
	skip_directory(d, f->path,
		lstat(f->path, &st) ? strerror(errno) : "another program has replaced it");
	return false;
}

int fd_saved_dump_sets(struct fd_dump *d, struct err *e)
{
	const struct fd_set_walk walk = {.found = add_one_of_set,
		.skipped = skip_directory,
		.enters = add_directory_of_set,
		.arg = d};

	mark_all_asked(d);
	for (uint32_t n = 1; n <= buf_count(&d->objects, struct fd_object); n++) {
		const struct fd_object *o = fd_object_at(d, n);
		cleanup_free char *path = NULL;
		int fd;

		if (o->o.kind != IMAGE_OBJECT_FILE || !(o->o.flags & IMAGE_FILE_SET))
			continue;
		path = xstrdup(o->link); /* @o moves when others are added */
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			skip_directory(d, path, strerror(errno));
		else if (fd_set_walk(&walk, fd, path, e))
			return -1;
	}
	return 0;
}
