/*
 * release_choice.c - finds the release whose libraries the image names: its folder has a
 * trecr-restart that is executed; and checks that its files are still the same.
 */
#include "supervisor/restore/release_choice.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/image.h"
#include "ckpt/image_read.h"
#include "lib/util.h"
#include "supervisor/split/stub_libraries.h"
#include "supervisor/target/module.h"

#define LOWER "/trecr-lower"

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && !strcmp(text + n - k, end);
}

/* The folder that the process had its libraries from; NULL: none of trecr's. */
static char *release_folder(const struct image *img)
{
	const struct image_module *m;
	size_t count;

	m = image_note_array(img, IMAGE_NOTE_LOWER, struct image_module, &count);
	for (size_t i = 0; i < count; i++) {
		const char *path = image_string(img, m[i].path);

		if (ends_in(path, LOWER))
			return strndup(path, strlen(path) - strlen(LOWER));
	}
	return NULL;
}

/* Cut @path, in place, to the folder that it lies in. */
static bool cut_to_folder(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = 0;
	return slash;
}

/* Whether @path is another release, installed beside this one. Nothing else is executed because an
 * image names it. */
static bool is_other_release(const char *path)
{
	cleanup_free char *own = read_link("/proc/self/exe", NULL);
	cleanup_free char *parent = realpath(path, NULL);
	cleanup_free char *all = NULL, *current = NULL;

	if (!own || !parent || strcmp(parent, path) || !cut_to_folder(own) ||
		!cut_to_folder(parent))
		return false;
	if (!strcmp(own, path))
		return false;
	all = xasprintf("%s/" TRECR_FROM_BIN, own);
	current = xasprintf("%s/current", all);
	free(steal_ptr(own));
	own = realpath(current, NULL);
	if (own && !strcmp(own, path))
		return false;
	free(steal_ptr(current));
	current = realpath(all, NULL);
	return current && !strcmp(current, parent);
}

static char *tool_in(const char *path)
{
	cleanup_free char *tool = xasprintf("%s/trecr-restart", path);

	return is_other_release(path) && !access(tool, X_OK) ? steal_ptr(tool) : NULL;
}

char *release_tool(const struct checkpoint *c)
{
	for (size_t i = 0; i < c->process_count; i++) {
		cleanup_free char *path = release_folder(c->processes[i]);
		char *tool = path ? tool_in(path) : NULL;

		if (tool)
			return tool;
	}
	return NULL;
}

char *release_tool_unread(const char *path)
{
	struct image_maker m;

	return !checkpoint_maker(path, &m, NULL) && *m.folder ? tool_in(m.folder) : NULL;
}

static int check_files(const struct checkpoint *c, const struct image *img, const char *path,
	uint32_t note, struct err *e)
{
	const struct image_module *m;
	size_t count, length = strlen(path);

	m = image_note_array(img, note, struct image_module, &count);
	for (size_t i = 0; i < count; i++) {
		const char *file = image_string(img, m[i].path);

		if (strncmp(file, path, length) || file[length] != '/' ||
			!module_check(&m[i], file, NULL))
			continue;
		return err_set(e, 0,
			"the program uses its GPU through the libraries of trecr %s in %s, and "
			"%s is gone or has changed: install that release again",
			image_string(c->job, c->info->version), path, file);
	}
	return 0;
}

int release_check(const struct checkpoint *c, struct err *e)
{
	for (size_t i = 0; i < c->process_count; i++) {
		cleanup_free char *path = release_folder(c->processes[i]);

		if (!path)
			continue;
		if (check_files(c, c->processes[i], path, IMAGE_NOTE_LOWER, e))
			return -1;
		/* Those above are in a portable image. */
		if (!(c->info->flags & IMAGE_JOB_PORTABLE) &&
			check_files(c, c->processes[i], path, IMAGE_NOTE_MODULES, e))
			return -1;
	}
	return 0;
}
