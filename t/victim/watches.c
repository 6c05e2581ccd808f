/*
 * inotify(7) by a program that works somewhere else, on files that it has not open: a tree of
 * directories, a symbolic link itself; and on an open file that has been removed since, as of
 * tail -f.
 */
#include <sys/inotify.h>

#include "victim.h"

static int watcher, wd[40], removed, links, file, top;

void victim_hurt(void)
{
	for (int i = 0; i < 40; i++)
		inotify_rm_watch(watcher, wd[i]);
	inotify_rm_watch(watcher, removed);
	while (read(watcher, (char[4096]){0}, 4096) > 0)
		;
}

static void expect(int number, uint32_t mask, const char *name)
{
	union {
		struct inotify_event e;
		char bytes[sizeof(struct inotify_event) + NAME_MAX + 1];
	} u = {0};
	ssize_t n = read(watcher, &u, sizeof(u));

	CHECK(n > 0 && u.e.wd == number && u.e.mask == mask &&
			!strcmp(u.e.len ? u.e.name : "", name),
		"%zd bytes, watch %d, mask %x; not %d, %x, %s", n, u.e.wd, u.e.mask, number,
		mask, name);
}

static void prepare(void)
{
	char name[64];

	MUST(!mkdir("far", 0700));
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), i % 4 ? "far/%d/%d" : "far/%d", i / 4, i % 4);
		MUST(!mkdir(name, 0700));
		wd[i] = inotify_add_watch(watcher, name, IN_CREATE | IN_ONLYDIR);
		MUST(wd[i] > 0);
	}
	MUST(!symlink("0", "far/link"));
	links = inotify_add_watch(watcher, "far/link", IN_MOVE_SELF | IN_DONT_FOLLOW);
	file = open("far/gone", O_RDWR | O_CREAT, 0600);
	removed = inotify_add_watch(watcher, "far/gone", IN_MODIFY);
	MUST(links > 0 && file >= 0 && removed > 0 && !unlink("far/gone"));
}

int main(void)
{
	char name[64];

	watcher = inotify_init1(IN_NONBLOCK);
	MUST(watcher >= 0);
	prepare();
	/* That number is not given a second time. */
	MUST(!inotify_rm_watch(watcher, inotify_add_watch(watcher, "far", IN_CREATE)));
	while (read(watcher, (char[4096]){0}, 4096) > 0)
		;
	/* It is known by its number only; and it is not below. */
	top = open(".", O_PATH);
	MUST(top >= 0 && !chdir("/"));
	victim_ready();
	victim_wait();
	MUST(!fchdir(top));
	for (int i = 0; i < 40; i++) {
		int fd;

		snprintf(name, sizeof(name), i % 4 ? "far/%d/%d/new" : "far/%d/new", i / 4,
			i % 4);
		fd = open(name, O_WRONLY | O_CREAT, 0600);
		MUST(fd >= 0);
		close(fd);
		expect(wd[i], IN_CREATE, "new");
	}
	MUST(write(file, "x", 1) == 1);
	expect(removed, IN_MODIFY, "");
	MUST(!rename("far/link", "far/moved"));
	expect(links, IN_MOVE_SELF, "");
	CHECK(read(watcher, name, 16) < 0 && errno == EAGAIN, "more events");
	CHECK(inotify_add_watch(watcher, "far", IN_CREATE) == removed + 2, "the next number");
	return victim_done();
}
