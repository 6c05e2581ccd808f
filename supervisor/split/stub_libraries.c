/*
 * stub_libraries.c - where the libraries lie, beside the tool or installed, and the variables
 * that name them.
 */
#include "supervisor/split/stub_libraries.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"

char *stubs_find_audit(const char *file)
{
	static const char *const places[] = {"lib/trecr", TRECR_FROM_BIN "/current"};
	cleanup_free char *exe = read_link("/proc/self/exe", NULL);
	char *slash = exe ? strrchr(exe, '/') : NULL;

	if (!slash)
		return NULL;
	*slash = 0;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		cleanup_free char *name = xasprintf("%s/%s/%s", exe, places[i], file);
		cleanup_free char *path = realpath(name, NULL);

		/* A ':' would be two libraries to ld.so. */
		if (path)
			return strchr(path, ':') ? NULL : steal_ptr(path);
	}
	return NULL;
}

static bool has_tool(const char *folder)
{
	cleanup_free char *tool = xasprintf("%s/trecr-restart", folder);
	cleanup_free char *lower = xasprintf("%s/trecr-lower", folder);

	return !access(tool, X_OK) && !access(lower, F_OK);
}

char *stubs_find_release(void)
{
	cleanup_free char *exe = read_link("/proc/self/exe", NULL);
	cleanup_free char *current = NULL, *path = NULL;
	char *slash = exe ? strrchr(exe, '/') : NULL;

	if (!slash)
		return NULL;
	*slash = 0;
	if (has_tool(exe)) /* an earlier release's */
		return steal_ptr(exe);
	current = xasprintf("%s/" TRECR_FROM_BIN "/current", exe);
	/* realpath(3) asks about each folder on the way: only where there is something. */
	path = has_tool(current) ? realpath(current, NULL) : NULL;
	return steal_ptr(path);
}

static int add_audit(const char *path, struct err *e)
{
	const char *others = getenv("LD_AUDIT");
	cleanup_free char *all = NULL;

	if (others && strstr(others, path))
		return 0;
	all = others && *others ? xasprintf("%s:%s", others, path) : xstrdup(path);
	return setenv("LD_AUDIT", all, 1) ? err_set(e, errno, "cannot set LD_AUDIT") : 0;
}

/* What stubs/audit goes by. */
static int add_kind(const char *kind, struct err *e)
{
	const char *others = getenv(STUB_KINDS);
	cleanup_free char *all = NULL;

	if (others && strstr(others, kind))
		return 0;
	all = others && *others ? xasprintf("%s,%s", others, kind) : xstrdup(kind);
	return setenv(STUB_KINDS, all, 1) ? err_set(e, errno, "cannot set %s", STUB_KINDS) : 0;
}

int stubs_load(const char *kind, const char *audit, struct err *e)
{
	return add_audit(audit, e) < 0 || add_kind(kind, e) < 0 ? -1 : 0;
}
