/*
 * inotify(7) with events that have not been read: of all kinds, of files and directories,
 * renames with their cookies, watches that have ended. With "full" as argument, the queue has
 * been full in between. After trecr-ckpt -s they are there as they were; else one event says
 * that they are lost.
 */
#include <sys/inotify.h>

#include "victim.h"

struct seen {
	int wd;
	uint32_t mask, cookie;
	char name[64];
};

static int queue, twin, directory, other, file, gone, ended;
static struct seen was[40000], is[40000];

static void touch(const char *path, const char *text)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	MUST(fd >= 0 && write(fd, text, strlen(text)) >= 0);
	close(fd);
}

static int watch(int fd, const char *path)
{
	int wd = inotify_add_watch(fd, path, IN_ALL_EVENTS);

	MUST(wd > 0);
	return wd;
}

static void begin(int fd)
{
	directory = watch(fd, "dir");
	other = watch(fd, "other");
	file = watch(fd, "file");
	gone = watch(fd, "gone");
	ended = watch(fd, "ended");
}

static void act(void)
{
	char byte;
	int fd;

	touch("dir/new", "x");
	touch("dir/a-name-that-is-longer-than-sixteen", "");
	MUST(!mkdir("dir/sub", 0700) && !chmod("dir/sub", 0755) && !chmod("dir", 0711));
	MUST(!rename("dir/new", "dir/newer") && !rename("dir/newer", "other/newest"));
	MUST(!rename("dir/sub", "elsewhere") && !rename("elsewhere", "other/sub"));
	MUST(!unlink("other/newest") && !rmdir("other/sub"));
	fd = open("file", O_RDONLY);
	MUST(fd >= 0 && read(fd, &byte, 1) == 1);
	close(fd);
	fd = open("dir", O_RDONLY | O_DIRECTORY);
	MUST(fd >= 0 && syscall(SYS_getdents64, fd, (char[2048]){0}, 2048) > 0);
	close(fd);
	MUST(!chmod("file", 0640) && !truncate("file", 1) && !rename("file", "file2") &&
		!rename("file2", "file"));
	MUST(!unlink("gone") && !inotify_rm_watch(queue, ended) &&
		!inotify_rm_watch(twin, ended));
	touch("file", "end");
}

static int read_all(int fd, struct seen *to)
{
	static char data[1 << 20];
	int count = 0;
	ssize_t n;

	while ((n = read(fd, data, sizeof(data))) > 0)
		for (ssize_t at = 0; at < n;) {
			struct inotify_event *e = (void *)(data + at);

			to[count].wd = e->wd;
			to[count].mask = e->mask;
			to[count].cookie = e->cookie;
			snprintf(to[count++].name, 64, "%s", e->len ? e->name : "");
			at += sizeof(*e) + e->len;
		}
	return count;
}

/* Cookies join what they did. */
static int partner(const struct seen *list, int count, int i)
{
	for (int k = 0; k < count; k++)
		if (k != i && list[i].cookie && list[k].cookie == list[i].cookie)
			return k;
	return -1;
}

/* Whether they are there. */
static bool check_events(int before, int after)
{
	bool lost = after == 1 && is[0].mask == IN_Q_OVERFLOW && is[0].wd == -1;

	if (lost && getenv("VICTIM_MAY_LOSE")) {
		victim_say("lost");
		return false;
	}
	CHECK(before == after, "%d events, there were %d; the first %x", after, before,
		is[0].mask);
	for (int i = 0; i < before && i < after; i++) {
		CHECK(was[i].wd == is[i].wd && was[i].mask == is[i].mask &&
				!strcmp(was[i].name, is[i].name),
			"event %d: %d %x %s; was %d %x %s", i, is[i].wd, is[i].mask, is[i].name,
			was[i].wd, was[i].mask, was[i].name);
		CHECK(partner(was, before, i) == partner(is, after, i) || before > 1000,
			"the cookie of event %d", i);
	}
	return true;
}

void victim_hurt(void)
{
	(void)!read(queue, (char[64]){0}, 64);
}

int main(int argc, char **argv)
{
	int before, after;
	bool kept;

	queue = inotify_init1(IN_NONBLOCK);
	twin = inotify_init1(IN_NONBLOCK);
	MUST(queue >= 0 && twin >= 0 && !mkdir("dir", 0700) && !mkdir("other", 0700));
	touch("file", "text");
	touch("gone", "");
	touch("ended", "");
	begin(queue);
	begin(twin);
	/* More than there is room for, and room for what follows. */
	for (int i = 0; argc > 1 && i < 20000; i++)
		MUST(!chmod("dir", i % 2 ? 0700 : 0711) && !chmod("other", 0700));
	for (int i = 0; argc > 1 && i < 100; i++)
		MUST(read(queue, (char[32]){0}, 32) == 32 &&
			read(twin, (char[32]){0}, 32) == 32);
	act();
	/* What is in the queue is not to be read: its twin is. */
	before = read_all(twin, was);
	close(twin);
	victim_ready();
	victim_wait();
	after = read_all(queue, is);
	kept = check_events(before, after);
	touch("new", "");
	CHECK(inotify_add_watch(queue, "new", IN_OPEN) == ended + 1 || !kept,
		"the next number");
	touch("dir/last", "");
	CHECK(read_all(queue, is) == 3 && is[0].wd == directory && is[0].mask == IN_CREATE,
		"a watch: %x", is[0].mask);
	return victim_done();
}
