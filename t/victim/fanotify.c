/*
 * fanotify: what is reported of which files, and what is ignored. An ordinary user can watch
 * files and directories, whose events name them by handles; root whole mounts, too.
 */
#include <sys/fanotify.h>

#include "victim.h"

#ifndef FAN_MARK_EVICTABLE
#define FAN_MARK_EVICTABLE 0x200
#endif
#ifndef FAN_REPORT_FID
#define FAN_REPORT_FID 0x200
#endif

static int group, handles = -1;
static char before[2][4096], home[PATH_MAX];

/* Lines of fdinfo, without the numbers of mounts, which are others in another namespace. */
static void look_at_marks(int fd, char *text, size_t size)
{
	char *p;

	victim_fdinfo(fd, text, size);
	p = strstr(text, "fanotify");
	MUST(p);
	memmove(text, p, strlen(p) + 1);
	for (p = text; (p = strstr(p, "mnt_id:")); p += 7)
		memset(p + 7, 'x', strcspn(p + 7, " "));
}

/* The next event's mask; the file's path into @path, when it comes as a descriptor. 0: none. */
static uint64_t next(int fd, char *path)
{
	union {
		struct fanotify_event_metadata event;
		char room[4096];
	} u;
	char link[64];
	ssize_t n = read(fd, &u, sizeof(u.event) + (fd == handles ? 256 : 0));

	*path = 0;
	if (n < (ssize_t)sizeof(u.event))
		return 0;
	if (u.event.fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", u.event.fd);
		n = readlink(link, path, PATH_MAX - 1);
		path[n > 0 ? n : 0] = 0;
		close(u.event.fd);
	}
	return u.event.mask;
}

static void use_files(void)
{
	char path[PATH_MAX], want[PATH_MAX + 16];
	uint64_t mask;
	int fd = open("watched/quiet", O_RDONLY);

	CHECK(fd >= 0, "%s", strerror(errno));
	close(fd);
	fd = open("watched/loud", O_RDONLY);
	close(fd);
	mask = next(group, path);
	snprintf(want, sizeof(want), "%s/watched/loud", home);
	CHECK(mask & FAN_OPEN && !strcmp(path, want), "mask %llx of %s", (long long)mask, path);
	CHECK(!next(group, path), "another event, of %s", path);
}

static void use_handles(void)
{
	char path[PATH_MAX];
	uint64_t mask;

	CHECK(!mkdir("watched/new", 0700), "%s", strerror(errno));
	mask = next(handles, path);
	CHECK(mask == (FAN_CREATE | FAN_ONDIR), "mask %llx", (long long)mask);
}

static void prepare_files(void)
{
	MUST(!fanotify_mark(
		group, FAN_MARK_ADD, FAN_OPEN | FAN_EVENT_ON_CHILD, AT_FDCWD, "watched"));
	MUST(!fanotify_mark(group,
		FAN_MARK_ADD | FAN_MARK_IGNORED_MASK | FAN_MARK_IGNORED_SURV_MODIFY, FAN_OPEN,
		AT_FDCWD, "watched/quiet"));
	/* Since Linux 5.19. */
	(void)fanotify_mark(
		group, FAN_MARK_ADD | FAN_MARK_EVICTABLE, FAN_MODIFY, AT_FDCWD, "watched/loud");
	/* Where nothing happens. */
	MUST(!fanotify_mark(
		     group, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_MODIFY, AT_FDCWD, "/sys") ||
		errno == EINVAL);
	look_at_marks(group, before[0], sizeof(before[0]));
}

void victim_hurt(void)
{
	fanotify_mark(handles, FAN_MARK_REMOVE, FAN_CREATE, AT_FDCWD, "watched");
}

int main(void)
{
	char now[4096];

	MUST(getcwd(home, sizeof(home)) && !mkdir("watched", 0700));
	close(open("watched/quiet", O_CREAT | O_WRONLY, 0600));
	close(open("watched/loud", O_CREAT | O_WRONLY, 0600));
	handles = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_NONBLOCK, O_RDONLY);
	if (handles < 0 || fanotify_mark(handles, FAN_MARK_ADD, FAN_CREATE | FAN_ONDIR,
				   AT_FDCWD, "watched"))
		victim_skip("no fanotify here");
	look_at_marks(handles, before[1], sizeof(before[1]));
	group = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK | FAN_CLOEXEC,
		O_RDONLY | O_LARGEFILE | O_CLOEXEC);
	if (group >= 0)
		prepare_files();
	victim_ready();
	victim_wait();
	look_at_marks(handles, now, sizeof(now));
	CHECK(!strcmp(now, before[1]), "handles: was\n%sis\n%s", before[1], now);
	if (group >= 0) {
		look_at_marks(group, now, sizeof(now));
		CHECK(!strcmp(now, before[0]), "was\n%sis\n%s", before[0], now);
		use_files();
	}
	use_handles();
	return victim_done();
}
