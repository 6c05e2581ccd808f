/* stub_path.c - by the folders that they lie in. */
#include "lib/stub_path.h"

#include <string.h>

bool is_stub_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return strstr(path, "/trecr/") &&
	       ((name - path > 7 && !strncmp(name - 7, "/stubs/", 7)) ||
		       (name - path > 10 && !strncmp(name - 10, "/coverage/", 10)));
}
