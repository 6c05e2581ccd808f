/*
 * shown_path.c - the mount points of a process that tell where its paths begin, and links read
 * with them.
 */
#include "lib/shown_path.h"

#include <string.h>

#include "lib/util.h"

/* The root directory as it is shown, NULL where that is "/". */
static char *root;

void shown_paths_of(pid_t task)
{
	cleanup_free char *link = xasprintf("/proc/%d/root", task);

	free(root);
	root = read_link(link, NULL);
	/* Without the right to read the link there is nothing in /proc that we could read. */
	if (!root || !strcmp(root, "/")) {
		free(root);
		root = NULL;
	}
}

char *shown_path(char *path)
{
	size_t len = root ? strlen(root) : 0;

	if (!len || strncmp(path, root, len))
		return path;
	if (!path[len])
		path[1] = 0;
	else if (path[len] == '/')
		memmove(path, path + len, strlen(path + len) + 1);
	return path;
}

char *read_shown_link(const char *link, struct err *e)
{
	char *path = read_link(link, e);

	return path ? shown_path(path) : NULL;
}
