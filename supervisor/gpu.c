#include "supervisor/gpu.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"

int gpu_option(void *field, const char *value, struct err *e)
{
	static const char *const words[] = {[GPU_AUTO] = "auto", [GPU_ON] = "on", [GPU_OFF] = "off"};

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(value, words[i]))
			continue;
		*(enum gpu_use *)field = i;
		return 0;
	}
	return err_set(e, 0, "must be auto, on or off");
}

/* Of the kernel's part of the driver, whether or not its devices have been made yet. */
static bool has_driver(void)
{
	return !access("/proc/driver/nvidia/version", F_OK) || !access("/dev/nvidiactl", F_OK);
}

/* Beside the tools in the build tree, or where `make install` puts it. NULL: not there. */
static char *find_audit(void)
{
	static const char *const places[] = {"lib/trecr", "../lib/trecr"};
	cleanup_free char *exe = read_link("/proc/self/exe", NULL);
	char *slash = exe ? strrchr(exe, '/') : NULL;

	if (!slash)
		return NULL;
	*slash = 0;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		cleanup_free char *name =
			xasprintf("%s/%s/libtrecr-audit.so", exe, places[i]);
		char *path = realpath(name, NULL);

		if (path)
			return path;
	}
	return NULL;
}

int gpu_prepare(enum gpu_use use, struct err *e)
{
	const char *others = getenv("LD_AUDIT");
	cleanup_free char *path = NULL, *all = NULL;

	if (use == GPU_OFF || (use == GPU_AUTO && !has_driver()))
		return 0;
	path = find_audit();
	/* A ':' would be two libraries to ld.so. */
	if (!path || strchr(path, ':'))
		return use == GPU_ON ? err_set(e, 0, "cannot find libtrecr-audit.so, which programs "
						     "with a GPU need")
				     : 0;
	if (others && strstr(others, path))
		return 0;
	all = others && *others ? xasprintf("%s:%s", others, path) : xstrdup(path);
	return setenv("LD_AUDIT", all, 1) ? err_set(e, errno, "cannot set LD_AUDIT") : 0;
}
