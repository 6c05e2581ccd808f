/*
 * unsaved_between.c - looks at the mappings of a process for libraries and shared memory that
 * other processes have, too.
 */
#include "supervisor/job/unsaved_between.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stub_path.h"
#include "lib/util.h"
#include "shared/address_windows.h"
#include "shared/shared_window.h"

/* Names of libraries up to their version. A program that has one may have messages under way.
 */
static const struct {
	const char *name, *what;
} libraries[] = {
	{"libmpi.so", "MPI"},
	{"libmpich.so", "MPI"},
	{"libmpi_abi.so", "MPI"},
	{"libnccl.so", "NCCL"},
};

struct mapping {
	unsigned long start;
	unsigned long long inode;
	unsigned major, minor;
	bool shared;
	char name[256]; /* as shown, cut off */
};

struct file {
	unsigned long long inode;
	unsigned major, minor;
	char name[256];
};

static int parse_mapping(const char *line, struct mapping *m)
{
	char permissions[5];

	m->name[0] = 0;
	if (sscanf(line, "%lx-%*x %4s %*x %x:%x %llu %255[^\n]", &m->start, permissions,
		    &m->major, &m->minor, &m->inode, m->name) < 5)
		return -1;
	m->shared = permissions[3] == 's';
	return 0;
}

/* For each mapping of @pid, until @see gives something else than 0, which is returned. A
 * process that has ended, or is not ours to look at, has none. */
static int for_mappings(
	pid_t pid, int (*see)(void *arg, pid_t pid, const struct mapping *m), void *arg)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", pid);
	cleanup_file FILE *f = fopen(path, "re");
	cleanup_free char *line = NULL;
	size_t room = 0;
	int r = 0;

	while (f && !r && getline(&line, &room, f) > 0) {
		struct mapping m;

		if (!parse_mapping(line, &m))
			r = see(arg, pid, &m);
	}
	return r;
}

/* ---- what this member has ---- */

struct own {
	struct buf files; /* struct file: memory that others may share */
	struct err *e;
};

static bool is_library(const char *path, const char *library)
{
	const char *slash = strrchr(path, '/');
	size_t n = strlen(library);

	return slash && !strncmp(slash + 1, library, n) &&
	       (!slash[1 + n] || slash[1 + n] == '.' || slash[1 + n] == ' ');
}

static int refuse_library(pid_t pid, const struct mapping *m, const char *what, struct err *e)
{
	return err_set(e, 0,
		"process %d uses %s (%s), and messages between ranks cannot be saved yet; on "
		"one machine a job is saved whole when its launcher is started by trecr-run, "
		"not trecr-run by the launcher: trecr-run mpiexec -n N PROGRAM",
		pid, what, strrchr(m->name, '/') + 1);
}

/* But for the memory of windows of MPI, of which each member saves its part (supervisor/fd/shared_window.h). */
static bool is_memory(const struct mapping *m)
{
	return m->shared &&
	       strncmp(m->name, SHARED_WINDOW_PREFIX, strlen(SHARED_WINDOW_PREFIX)) != 0 &&
	       (!strncmp(m->name, "/dev/shm/", strlen("/dev/shm/")) ||
		       !strncmp(m->name, "/memfd:", strlen("/memfd:")));
}

static int see_own(void *arg, pid_t pid, const struct mapping *m)
{
	struct own *own = arg;
	struct file file = {m->inode, m->major, m->minor, ""};

	/* The lower half is in no image; what it has with others' it makes anew. */
	if (in_lower_window(m->start) || is_stub_path(m->name))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		if (is_library(m->name, libraries[i].name))
			return refuse_library(pid, m, libraries[i].what, own->e);
	if (is_memory(m)) {
		memcpy(file.name, m->name, sizeof(file.name));
		buf_push(&own->files, struct file, &file);
	}
	return 0;
}

/* ---- whether somebody else has it ---- */

static int see_other(void *arg, pid_t pid, const struct mapping *m)
{
	struct own *own = arg;

	if (!is_memory(m))
		return 0;
	for (size_t i = 0; i < buf_count(&own->files, struct file); i++) {
		const struct file *f = buf_at(&own->files, struct file, i);

		if (f->inode == m->inode && f->major == m->major && f->minor == m->minor)
			return err_set(own->e, 0,
				"process %d, which is not of this rank, shares the memory %s: "
				"a checkpoint of several members cannot hold it yet",
				pid, f->name);
	}
	return 0;
}

static bool is_one_of(pid_t pid, const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static int check_others(struct own *own, const pid_t *pids, size_t count)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	if (!proc)
		return err_set(own->e, errno, "cannot list /proc");
	while (!r && (entry = readdir(proc))) {
		pid_t pid = isdigit((unsigned char)*entry->d_name) ? atoi(entry->d_name) : 0;

		if (pid && !is_one_of(pid, pids, count))
			r = for_mappings(pid, see_other, own);
	}
	closedir(proc);
	return r;
}

int between_check(const pid_t *pids, size_t count, struct err *e)
{
	struct own own = {.e = e};
	int r = 0;

	for (size_t i = 0; i < count && !r; i++)
		r = for_mappings(pids[i], see_own, &own);
	if (!r && own.files.len)
		r = check_others(&own, pids, count);
	buf_free(&own.files);
	return r;
}
