/*
 * cgroup.c - the cgroups of a process from /proc, and the directories here that are the same.
 */
#include "supervisor/state/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* "4:memory:/some/where" or, of version 2, "0::/some/where". */
struct place {
	char controllers[256];
	char path[PATH_MAX];
};

static bool parse_place(const char *line, size_t size, struct place *p)
{
	const char *first = memchr(line, ':', size), *second;

	second = first ? memchr(first + 1, ':', line + size - first - 1) : NULL;
	if (!second || (size_t)(second - first) > sizeof(p->controllers) ||
		(size_t)(line + size - second) > sizeof(p->path))
		return false;
	memcpy(p->controllers, first + 1, second - first - 1);
	p->controllers[second - first - 1] = 0;
	memcpy(p->path, second + 1, line + size - second - 1);
	p->path[line + size - second - 1] = 0;
	return true;
}

static bool has_line(const char *text, const char *line, size_t size)
{
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
		if (strcspn(p, "\n") == size && !memcmp(p, line, size))
			return true;
	return false;
}

int cgroup_read(pid_t pid, const char *mine, struct buf *out, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/cgroup", pid);
	cleanup_free char *its = NULL;
	size_t size;

	if (!mine)
		return 0;
	if (read_file(path, &its, &size, e))
		return -1;
	for (const char *p = its; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t n = strcspn(p, "\n");

		if (!has_line(mine, p, n))
			buf_printf(out, "%.*s\n", (int)n, p);
	}
	return 0;
}

/* Whether the comma-separated @list has all words of @words. */
static bool has_words(const char *list, const char *words)
{
	for (const char *w = words; *w; w += strcspn(w, ","), w += *w == ',') {
		size_t n = strcspn(w, ",");
		bool found = false;

		for (const char *l = list; *l; l += strcspn(l, ","), l += *l == ',')
			found |= strcspn(l, ",") == n && !memcmp(l, w, n);
		if (!found)
			return false;
	}
	return true;
}

/* The directory of @p, if a line of mountinfo (man proc_pid_mountinfo) shows the hierarchy. */
static char *directory_in(const char *line, const struct place *p)
{
	char root[512], at[512], type[32], options[512];
	const char *rest = strstr(line, " - ");
	size_t n;

	if (!rest || sscanf(line, "%*s %*s %*s %511s %511s", root, at) != 2 ||
		sscanf(rest, " - %31s %*s %511s", type, options) != 2)
		return NULL;
	if (*p->controllers ? strcmp(type, "cgroup") || !has_words(options, p->controllers)
			    : strcmp(type, "cgroup2") != 0)
		return NULL;
	n = strcmp(root, "/") ? strlen(root) : 0;
	if (strncmp(p->path, root, n) || (p->path[n] && p->path[n] != '/'))
		return NULL;
	return xasprintf("%s%s", at, p->path + n);
}

static char *find_directory(const struct place *p)
{
	cleanup_file FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char line[4096], *found = NULL;

	while (mounts && !found && fgets(line, sizeof(line), mounts))
		found = directory_in(line, p);
	return found;
}

/* A path from an image could lead anywhere. */
static bool climbs_out(const char *path)
{
	for (const char *p = strstr(path, ".."); p; p = strstr(p + 1, ".."))
		if ((p == path || p[-1] == '/') && (!p[2] || p[2] == '/'))
			return true;
	return false;
}

/* -1 and errno on failure. */
static int join_cgroup(pid_t pid, const struct place *p)
{
	cleanup_free char *directory = climbs_out(p->path) ? NULL : find_directory(p);
	cleanup_free char *file = NULL, *text = xasprintf("%d", pid);
	cleanup_fd int fd = -1;

	if (!directory) {
		errno = ENOENT;
		return -1;
	}
	file = xasprintf("%s/cgroup.procs", directory);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

void cgroup_join(pid_t pid, const char *text, size_t size,
	void (*notice)(void *arg, const char *line), void *arg)
{
	for (size_t at = 0, n; at < size; at += n + 1) {
		const char *end = memchr(text + at, '\n', size - at);
		cleanup_free char *line = NULL;
		struct place p;

		n = end ? (size_t)(end - text) - at : size - at;
		if (!parse_place(text + at, n, &p) || !join_cgroup(pid, &p))
			continue;
		line = xasprintf("cannot put process %d into its cgroup %s%s%s: %s", pid,
			p.controllers, *p.controllers ? ":" : "", p.path, strerror(errno));
		notice(arg, line);
	}
}
