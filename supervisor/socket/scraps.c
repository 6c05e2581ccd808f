#include "supervisor/socket/scraps.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/util.h"

static char *path_of(const char *name)
{
	const char *tmp = getenv("TMPDIR");

	return xasprintf("%s/%s", tmp && *tmp == '/' ? tmp : "/tmp", name);
}

static char *path_beside(const char *file, const char *name)
{
	return xasprintf("%.*s%s", (int)(strrchr(file, '/') + 1 - file), file, name);
}

/* For other users' sockets, whose trouble it is, too. */
static char *make(char *path, struct err *e)
{
	if ((!mkdir(path, 0711) && !chmod(path, 0711)) || errno == EEXIST)
		return path;
	err_set(e, errno, "cannot make directory %s", path);
	free(path);
	return NULL;
}

char *socket_scraps(const char *name, struct err *e)
{
	return make(path_of(name), e);
}

char *socket_scraps_beside(const char *file, const char *name, struct err *e)
{
	return make(path_beside(file, name), e);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)remove(path); /* what is left is an empty directory of ours */
	return 0;
}

static void remove_all(char *path)
{
	(void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(path);
}

void socket_scraps_remove(const struct image *job, const char *name)
{
	const struct image_socket *s;
	size_t count;

	s = image_note_array(job, IMAGE_NOTE_SOCKETS, struct image_socket, &count);
	for (size_t i = 0; i < count; i++) {
		const char *file = image_string(job, s[i].directory);

		if (s[i].flags & IMAGE_SOCKET_MOVED && strchr(file, '/'))
			remove_all(path_beside(file, name));
	}
	if (count)
		remove_all(path_of(name));
}
