/*
 * inotify(7): watches with their numbers and masks, of a directory, of files in it and
 * elsewhere; a queue with events in it, which becomes one that says that events were lost.
 */
#include <sys/inotify.h>

#include "victim.h"

static int watcher, busy, directory, file, above, removed, once;
static char shown[2][1024];

static void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	MUST(fd >= 0 && write(fd, "x", 1) == 1);
	close(fd);
}

/* Read one event: its watch, mask and name. */
static void expect(int fd, int wd, uint32_t mask, const char *name)
{
	static char data[4096];
	static size_t at, have;
	const struct inotify_event *e;

	if (at == have) {
		ssize_t n = read(fd, data, sizeof(data));

		CHECK(n > 0, "no event for watch %d: %s", wd, strerror(errno));
		if (n <= 0)
			return;
		at = 0;
		have = n;
	}
	e = (void *)(data + at);
	at += sizeof(*e) + e->len;
	CHECK(e->wd == wd && e->mask == mask && !strcmp(e->len ? e->name : "", name),
		"watch %d, mask %x, name %s; not %d, %x, %s", e->wd, e->mask,
		e->len ? e->name : "", wd, mask, name);
}

/* What the kernel shows of @fd's watches, flags too (Linux 5.19). */
static void look_at_watches(int fd, char *text, size_t size)
{
	char *watches;

	victim_fdinfo(fd, text, size);
	watches = strstr(text, "inotify");
	MUST(watches);
	memmove(text, watches, strlen(watches) + 1);
}

void victim_hurt(void)
{
	inotify_rm_watch(watcher, file);
}

int main(void)
{
	watcher = inotify_init1(IN_NONBLOCK);
	busy = inotify_init1(IN_NONBLOCK);
	MUST(watcher >= 0 && busy >= 0 && !mkdir("top", 0700) && !mkdir("top/sub", 0700));
	touch("top/sub/file");
	/* Numbers with gaps between them. */
	removed = inotify_add_watch(watcher, "top", IN_CREATE);
	directory = inotify_add_watch(watcher, "top/sub", IN_CREATE | IN_DELETE);
	MUST(!inotify_rm_watch(watcher, removed));
	above = inotify_add_watch(watcher, "top", IN_CREATE | IN_ONLYDIR);
	MUST(open("top/sub", O_RDONLY | O_DIRECTORY) >= 0);
	file = inotify_add_watch(watcher, "top/sub/file", IN_MODIFY);
	MUST(directory > 0 && above > 0 && file > 0);
	MUST(read(watcher, (char[256]){0}, 256) > 0); /* of the removal */
	MUST(inotify_add_watch(busy, "top/sub/file", IN_MODIFY | IN_CLOSE_WRITE) == 1);
	touch("top/sub/file");
	MUST(read(watcher, (char[256]){0}, 256) > 0);
	once = inotify_init1(IN_NONBLOCK);
	MUST(inotify_add_watch(once, "top/sub", IN_CREATE | IN_ONESHOT | IN_EXCL_UNLINK) == 1);
	look_at_watches(once, shown[0], sizeof(shown[0]));
	victim_ready();
	victim_wait();
	look_at_watches(once, shown[1], sizeof(shown[1]));
	CHECK(!strcmp(shown[0], shown[1]), "it was\n%sis\n%s", shown[0], shown[1]);
	touch("top/sub/new");
	touch("top/sub/file");
	touch("top/here");
	unlink("top/sub/new");
	expect(watcher, directory, IN_CREATE, "new");
	expect(watcher, file, IN_MODIFY, "");
	expect(watcher, above, IN_CREATE, "here");
	expect(watcher, directory, IN_DELETE, "new");
	CHECK(read(watcher, (char[256]){0}, 256) < 0 && errno == EAGAIN, "more events");
	{
		struct inotify_event e[8] = {0};
		ssize_t n = read(busy, e, sizeof(e));
		/* Either what was in it, or that it was lost; then what has come since. */
		bool lost = e[0].mask == IN_Q_OVERFLOW && e[0].wd == -1;

		CHECK(n == (lost ? 3 : 4) * (ssize_t)sizeof(e[0]), "%zd bytes, %x", n,
			e[0].mask);
		CHECK(lost || e[0].mask == IN_MODIFY, "mask %x", e[0].mask);
		CHECK(e[n / sizeof(e[0]) - 1].wd == 1 &&
				e[n / sizeof(e[0]) - 1].mask == IN_CLOSE_WRITE,
			"the last event");
	}
	return victim_done();
}
