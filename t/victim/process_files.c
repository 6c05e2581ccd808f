/*
 * Files of /proc that belong to the program's processes: they lead to the same process, the
 * same memory and the same position. And the namespaces that it is in.
 */
#include <dirent.h>
#include <sys/prctl.h>

#include "tree.h"

static pid_t child;
static int memory, maps, twin, comm, childs, tasks, inherited;
static volatile long word = 4711;
static char first[200];
static off_t at;

static bool holds(int fd, const char *what)
{
	char text[16384];
	ssize_t n, all = 0;

	while ((n = pread(fd, text + all, sizeof(text) - 1 - all, all)) > 0)
		all += n;
	text[all] = 0;
	return strstr(text, what);
}

/* Two processes look through what was one descriptor: each sees the first one's. */
static void check_inherited(void)
{
	char line[64];

	snprintf(line, sizeof(line), "Pid:\t%d\n", tree_root);
	CHECK(holds(inherited, line), "the inherited one is not of process %d", tree_root);
}

static void check_memory(void)
{
	long now = 0;

	CHECK(lseek(memory, 0, SEEK_CUR) == (off_t)&word, "position in mem");
	CHECK(read(memory, &now, sizeof(now)) == sizeof(now) && now == 4711, "mem: %ld", now);
	word = 4712;
	CHECK(pread(memory, &now, sizeof(now), (off_t)&word) == sizeof(now) && now == 4712,
		"mem: %ld after a change", now);
}

static void check_maps(void)
{
	char line[64];

	CHECK(lseek(maps, 0, SEEK_CUR) == at, "position in maps");
	CHECK(lseek(twin, 5, SEEK_SET) == 5 && lseek(maps, 0, SEEK_CUR) == 5, "no twins");
	snprintf(line, sizeof(line), "%.12s", first);
	CHECK(holds(maps, line), "maps without %s", line);
}

static void check_comm(void)
{
	char name[16] = "";

	CHECK(write(comm, "renamed", 7) == 7, "cannot write comm: %s", strerror(errno));
	prctl(PR_GET_NAME, name);
	CHECK(!strcmp(name, "renamed"), "comm is of another: the name is %s", name);
	CHECK(fcntl(comm, F_GETFD) == FD_CLOEXEC, "close-on-exec is lost");
}

static const char *const spaces[] = {
	"net", "mnt", "pid", "user", "uts", "ipc", "time", "cgroup"};
#define SPACES (sizeof(spaces) / sizeof(spaces[0]))

static int space[SPACES];

static int open_space(size_t i, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/ns/%s", spaces[i]);
	return open(path, flags);
}

static void check_spaces(void)
{
	for (size_t i = 0; i < SPACES; i++) {
		int now = open_space(i, O_RDONLY);
		struct stat a, b;

		CHECK(now < 0 || (!fstat(space[i], &a) && !fstat(now, &b) &&
					 a.st_dev == b.st_dev && a.st_ino == b.st_ino),
			"the namespace %s is another", spaces[i]);
		close(now);
	}
	CHECK(fcntl(space[0], F_GETFD) == FD_CLOEXEC && fcntl(space[1], F_GETFL) & O_PATH,
		"flags of namespaces");
}

void victim_hurt(void)
{
	dup2(0, space[2]);
	lseek(memory, 0, SEEK_SET);
	close(childs);
}

int main(void)
{
	char path[64], line[64];
	struct dirent *entry;
	DIR *dir;
	int count = 0;

	inherited = open("/proc/self/status", O_RDONLY);
	child = tree_child(NULL, check_inherited);
	tree_await(1);
	snprintf(path, sizeof(path), "/proc/%d/status", child);
	childs = open(path, O_RDONLY);
	memory = open("/proc/self/mem", O_RDWR);
	maps = open("/proc/self/maps", O_RDONLY);
	comm = open("/proc/self/comm", O_RDWR | O_CLOEXEC);
	tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
	twin = dup(maps);
	MUST(inherited >= 0 && childs >= 0 && memory >= 0 && maps >= 0 && comm >= 0 &&
		tasks >= 0 && twin >= 0);
	for (size_t i = 0; i < SPACES; i++)
		space[i] = open_space(i, i == 0 ? O_CLOEXEC : i == 1 ? O_PATH : O_RDONLY);
	MUST(lseek(memory, (off_t)&word, SEEK_SET) == (off_t)&word);
	MUST(read(maps, first, sizeof(first)) == sizeof(first));
	at = lseek(maps, 0, SEEK_CUR);
	victim_ready();
	victim_wait();
	check_memory();
	check_maps();
	check_comm();
	check_spaces();
	snprintf(line, sizeof(line), "Pid:\t%d\n", child);
	CHECK(holds(childs, line), "status is not the child's");
	dir = fdopendir(tasks);
	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	CHECK(count == 1, "%d threads", count);
	tree_finish(1);
	tree_reap(child, 0);
	return victim_done();
}
