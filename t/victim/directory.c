/* An open directory, read half-way: the rest comes, each entry once. And one opened with
 * O_PATH, one that other calls are relative to. */
#include <dirent.h>

#include "victim.h"

static DIR *d;
static int seen[200], path, rel;

void victim_hurt(void)
{
	rewinddir(d);
	for (int i = 0; i < 5; i++)
		readdir(d);
}

static int note(struct dirent *e)
{
	int n;

	if (sscanf(e->d_name, "entry-%d", &n) == 1)
		seen[n]++;
	return 1;
}

int main(void)
{
	struct dirent *e;
	struct stat st;
	char name[32], link[PATH_MAX] = "";
	int n = 0, raw;
	long got;
	char buf[1024];

	MUST(!mkdir("dir", 0700));
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "dir/entry-%d", i);
		close(open(name, O_CREAT | O_WRONLY, 0600));
	}
	/* By hand with a small buffer, so that the position is the kernel's. */
	raw = open("dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(raw > 0);
	while (n < 100 && (got = syscall(SYS_getdents64, raw, buf, sizeof(buf))) > 0)
		for (long o = 0; o < got; o += ((struct dirent *)(buf + o))->d_reclen)
			n += note((struct dirent *)(buf + o));
	d = opendir("dir");
	path = open("dir/entry-7", O_PATH | O_CLOEXEC);
	rel = open("dir", O_PATH);
	MUST(d && path > 0 && rel > 0);
	victim_ready();
	victim_wait();
	while ((got = syscall(SYS_getdents64, raw, buf, sizeof(buf))) > 0)
		for (long o = 0; o < got; o += ((struct dirent *)(buf + o))->d_reclen)
			note((struct dirent *)(buf + o));
	for (int i = 0; i < 200; i++)
		if (seen[i] != 1) {
			CHECK(0, "entry %d came %d times", i, seen[i]);
			break;
		}
	memset(seen, 0, sizeof(seen));
	while ((e = readdir(d)))
		note(e);
	for (int i = 0; i < 200; i++)
		if (seen[i] != 1) {
			CHECK(0, "readdir: entry %d came %d times", i, seen[i]);
			break;
		}
	CHECK(fcntl(path, F_GETFL) & O_PATH, "O_PATH is lost");
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path);
	CHECK(readlink(name, link, sizeof(link) - 1) > 0 && strstr(link, "dir/entry-7"),
		"it is %s", link);
	CHECK(read(path, buf, 1) < 0 && errno == EBADF, "it can be read");
	CHECK(!fstatat(rel, "entry-3", &st, 0), "relative to a directory: %s", strerror(errno));
	return victim_done();
}
