/*
 * watched_file_names.c - the search: a queue of directories, nearest to the program first, with a
 * memory of what earlier checkpoints found.
 */
#include "supervisor/fd_kinds/watched_file_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/shown_path.h"
#include "lib/util.h"

/* The program is stopped meanwhile. */
#define TIME_LIMIT_NS 4000000000ull

struct wanted {
	uint64_t inode;
	size_t index;
};

struct search {
	const struct watch_handle *h;
	char **paths;
	struct wanted *wanted; /* in the order of inodes */
	size_t count, left;
	struct buf devices; /* dev_t: of directories to look into */
	struct buf queue;   /* char *: directories */
	size_t next;        /* in the queue */
	uint64_t *seen;     /* inodes of directories, a hash table; 0: free */
	size_t seen_size, seen_count;
	uint64_t end; /* of CLOCK_MONOTONIC */
};

/* ---- what was found before ---- */

struct known {
	uint64_t inode;
	unsigned device;
	char *path;
};

/* In the order of device and inode; of all searches of this supervisor. */
static struct buf all_known;

static int compare_known(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static struct known *find_known(const struct watch_handle *h)
{
	struct known key = {.inode = h->inode, .device = h->device};

	return all_known.len
		       ? bsearch(&key, all_known.data, buf_count(&all_known, struct known),
				 sizeof(key), compare_known)
		       : NULL;
}

static void remember_search(const struct search *s)
{
	cleanup_buf struct buf new = {0};

	for (size_t i = 0; i < s->count; i++) {
		const struct watch_handle *h = &s->h[s->wanted[i].index];
		const char *path = s->paths[s->wanted[i].index];
		struct known *k = path ? find_known(h) : NULL, add;

		if (!path)
			continue;
		add = (struct known){h->inode, h->device, xstrdup(path)};
		if (k) {
			free(k->path);
			*k = add;
		} else {
			buf_push(&new, struct known, &add);
		}
	}
	buf_add(&all_known, new.data, new.len);
	if (all_known.len)
		qsort(all_known.data, buf_count(&all_known, struct known), sizeof(struct known),
			compare_known);
}

/* ---- places ---- */

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* Whether @path, which has @inode, is one of those wanted. */
static void consider_path(struct search *s, const char *path, uint64_t inode)
{
	struct wanted key = {.inode = inode};
	struct wanted *w, *end = s->wanted + s->count;

	w = bsearch(&key, s->wanted, s->count, sizeof(key), compare_wanted);
	while (w && w > s->wanted && w[-1].inode == inode)
		w--;
	for (; w && w < end && w->inode == inode; w++) {
		if (s->paths[w->index] || !watch_handle_leads_to(&s->h[w->index], path))
			continue;
		s->paths[w->index] = xstrdup(path);
		s->left--;
	}
}

static void enqueue_directory(struct search *s, char *path)
{
	buf_push(&s->queue, char *, &path);
}

/* @path, its parent directories, and, later, what is in it, or beside it. */
static void look_near(struct search *s, const char *path)
{
	cleanup_free char *at = xstrdup(path);
	struct stat st;
	bool first = true;

	if (path[0] != '/' || lstat(path, &st))
		return;
	for (;;) {
		char *slash = strrchr(at, '/');

		consider_path(s, at, st.st_ino);
		if (first && S_ISDIR(st.st_mode)) {
			enqueue_directory(s, xstrdup(at));
			first = false;
		}
		if (!at[1])
			return;
		slash[slash == at] = 0;
		if (first)
			enqueue_directory(s, xstrdup(at));
		first = false;
		if (lstat(at, &st))
			return;
	}
}

static void look_at_link(struct search *s, const char *link)
{
	cleanup_free char *path = read_shown_link(link, NULL);

	if (path)
		look_near(s, path);
}

static void look_at_files(struct search *s, pid_t task)
{
	cleanup_free char *list = xasprintf("/proc/%d/fd", task);
	DIR *dir = opendir(list);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		cleanup_free char *link = xasprintf("%s/%s", list, entry->d_name);

		look_at_link(s, link);
	}
	if (dir)
		closedir(dir);
}

/* Arguments, which may be relative to the working directory, or values of variables. */
static void look_at_texts(struct search *s, pid_t task, const char *name, const char *home)
{
	cleanup_free char *file = xasprintf("/proc/%d/%s", task, name);
	cleanup_free char *text = NULL;
	size_t len;

	if (read_file(file, &text, &len, NULL))
		return;
	for (const char *p = text; p < text + len; p += strlen(p) + 1) {
		const char *value = strchr(p, '='), *word = value ? value + 1 : p;
		cleanup_free char *relative =
			home && *word && *word != '/' ? xasprintf("%s/%s", home, word) : NULL;

		look_near(s, relative ? relative : word);
	}
}

static void add_device(struct search *s, dev_t device)
{
	for (size_t i = 0; i < buf_count(&s->devices, dev_t); i++)
		if (*buf_at(&s->devices, dev_t, i) == device)
			return;
	buf_push(&s->devices, dev_t, &device);
}

/* The devices of the files, as the kernel has them inside and as stat(2) shows them; and at
 * last the places where they are mounted. */
static void look_at_mounts(struct search *s, const char *mountinfo, bool places)
{
	cleanup_buf struct buf devices = {0};
	char mount[PATH_MAX];
	struct stat st;

	buf_add(&devices, s->devices.data, s->devices.len);
	for (size_t i = 0; i < buf_count(&devices, dev_t); i++) {
		dev_t device = *buf_at(&devices, dev_t, i);

		for (const char *line = mountinfo; fd_mount_next(&line, device, mount);) {
			if (stat(mount, &st))
				continue;
			add_device(s, st.st_dev);
			if (places)
				look_near(s, mount);
		}
	}
}

/* ---- the directories ---- */

/* Whether directory @inode has been seen; it has now. */
static bool was_seen(struct search *s, uint64_t inode)
{
	size_t at;

	if (s->seen_count * 2 >= s->seen_size) {
		struct search old = *s;

		s->seen_size = old.seen_size ? old.seen_size * 2 : 1024;
		s->seen = xcalloc(s->seen_size, sizeof(*s->seen));
		s->seen_count = 0;
		for (size_t i = 0; i < old.seen_size; i++)
			if (old.seen[i])
				(void)was_seen(s, old.seen[i]);
		free(old.seen);
	}
	at = inode * 0x9e3779b97f4a7c15ull % s->seen_size;
	for (; s->seen[at]; at = (at + 1) % s->seen_size)
		if (s->seen[at] == inode)
			return true;
	s->seen[at] = inode;
	s->seen_count++;
	return false;
}

static bool is_wanted_place(struct search *s, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	for (size_t i = 0; i < buf_count(&s->devices, dev_t); i++)
		if (*buf_at(&s->devices, dev_t, i) == st.st_dev)
			return !was_seen(s, st.st_ino ^ (uint64_t)st.st_dev << 40);
	return false;
}

static void look_into(struct search *s, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	DIR *dir = fd >= 0 && is_wanted_place(s, fd) ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (s->left && (entry = readdir(dir))) {
		const char *name = entry->d_name;
		char *inside;

		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		inside = xasprintf("%s/%s", path[1] ? path : "", name);
		consider_path(s, inside, entry->d_ino);
		if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
			enqueue_directory(s, inside);
		else
			free(inside);
	}
	closedir(dir);
}

static void walk_queue(struct search *s)
{
	while (s->left && s->next < buf_count(&s->queue, char *) &&
		clock_ns(CLOCK_MONOTONIC) < s->end) {
		cleanup_free char *path = *buf_at(&s->queue, char *, s->next);

		*buf_at(&s->queue, char *, s->next++) = NULL;
		look_into(s, path);
	}
}

static void add_wanted(struct search *s, size_t index)
{
	const struct known *k = find_known(&s->h[index]);

	if (k && watch_handle_leads_to(&s->h[index], k->path)) {
		s->paths[index] = xstrdup(k->path);
		return;
	}
	s->wanted[s->count++] = (struct wanted){s->h[index].inode, index};
	add_device(s, watch_handle_device(&s->h[index]));
}

static void search_everywhere(struct search *s, pid_t task, const char *mountinfo)
{
	cleanup_free char *link = xasprintf("/proc/%d/cwd", task);
	cleanup_free char *exe = xasprintf("/proc/%d/exe", task);
	cleanup_free char *home = read_shown_link(link, NULL);

	qsort(s->wanted, s->count, sizeof(*s->wanted), compare_wanted);
	s->left = s->count;
	s->end = clock_ns(CLOCK_MONOTONIC) + TIME_LIMIT_NS;
	look_at_mounts(s, mountinfo, false);
	if (home)
		look_near(s, home);
	look_at_files(s, task);
	look_at_texts(s, task, "cmdline", home);
	look_at_texts(s, task, "environ", NULL);
	look_at_link(s, exe);
	look_at_mounts(s, mountinfo, true);
	look_near(s, "/");
	walk_queue(s);
}

void watch_paths_search(const struct watch_handle *h, size_t count, pid_t task,
	const char *mountinfo, char **paths)
{
	cleanup_free struct wanted *wanted = xcalloc(count, sizeof(*wanted));
	struct search s = {.h = h, .paths = paths, .wanted = wanted};

	for (size_t i = 0; i < count; i++)
		if (!paths[i])
			add_wanted(&s, i);
	if (s.count) {
		search_everywhere(&s, task, mountinfo);
		remember_search(&s);
	}
	for (; s.next < buf_count(&s.queue, char *); s.next++)
		free(*buf_at(&s.queue, char *, s.next));
	buf_free(&s.queue);
	buf_free(&s.devices);
	free(s.seen);
}
