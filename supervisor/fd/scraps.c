#include "supervisor/fd/scraps.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/fd/fd.h"

void fd_name_scraps(struct fd_restore_options *o)
{
	uint64_t number = 0;

	/* Without random numbers the process id has to do. */
	(void)!getrandom(&number, sizeof(number), 0);
	snprintf(o->scraps, sizeof(o->scraps), ".trecr-%d-%08x", getpid(), (unsigned)number);
}

static char *path_of(const char *name)
{
	return xasprintf("%s/%s", temporary_directory(), name);
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

char *fd_scraps(const char *name, struct err *e)
{
	return make(path_of(name), e);
}

char *fd_scraps_beside(const char *file, const char *name, struct err *e)
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

void fd_remove_scraps(const struct checkpoint *c, const struct fd_restore_options *o)
{
	const struct image_socket *s;
	const struct image *job = c->job;
	const char *name = o->scraps;
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
