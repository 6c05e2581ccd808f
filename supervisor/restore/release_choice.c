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
static char *folder(const struct image *img)
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

/* In place: to the folder that @path lies in. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = 0;
	return slash;
}

/* Whether @path is a release that was installed with this one, and another. Nothing else is
 * executed for an image's sake. */
static bool is_beside(const char *path)
{
	cleanup_free char *own = read_link("/proc/self/exe", NULL);
	cleanup_free char *parent = realpath(path, NULL);
	cleanup_free char *all = NULL, *current = NULL;

	if (!own || !parent || strcmp(parent, path) || !go_up(own) || !go_up(parent))
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

char *release_tool(const struct checkpoint *c)
{
	for (size_t i = 0; i < c->process_count; i++) {
		cleanup_free char *path = folder(c->processes[i]);
		cleanup_free char *tool = path ? xasprintf("%s/trecr-restart", path) : NULL;

		if (path && is_beside(path) && !access(tool, X_OK))
			return steal_ptr(tool);
	}
	return NULL;
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
			"the program uses its GPU by way of libraries of trecr %s in %s, and "
			"%s is gone or has changed: install that release again",
			image_string(c->job, c->info->version), path, file);
	}
	return 0;
}

int release_check(const struct checkpoint *c, struct err *e)
{
	for (size_t i = 0; i < c->process_count; i++) {
		cleanup_free char *path = folder(c->processes[i]);

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
