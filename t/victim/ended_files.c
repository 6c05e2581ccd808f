/*
 * Files and directories of /proc of a process and a thread that have ended: they lead to
 * nothing, even if the number is another process's by now. And paths (O_PATH) of living ones.
 */
#include <dirent.h>

#include "tree.h"

static int stat_file, read_file, memory, maps, directory, path, task, thread_file, network, own,
	childs;
static char network_text[100];

static void *nothing(void *arg)
{
	return NULL;
}

static int open_of(pid_t pid, const char *what, int flags)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d%s", pid, what);
	fd = open(name, flags | O_CLOEXEC);
	MUST(fd >= 0);
	return fd;
}

/* Further directories of a process that ends. */
static const char *const places[] = {"/fd", "/fdinfo", "/ns", "/map_files", "/net"};
#define PLACES (sizeof(places) / sizeof(places[0]))

static int place[PLACES];

static void check_places(void)
{
	for (size_t i = 0; i < PLACES; i++) {
		char data[4096];

		errno = 0;
		CHECK(syscall(SYS_getdents64, place[i], data, sizeof(data)) < 0 &&
				(errno == ENOENT || (errno == EINVAL && i == PLACES - 1)),
			"entries of %s: %s", places[i], strerror(errno));
	}
}

void victim_hurt(void)
{
	MUST(dup2(open_of(getpid(), "/stat", O_RDONLY), stat_file) == stat_file);
}

/* A process whose files are opened, and which ends. */
static void prepare_process(void)
{
	char text[4096];
	pid_t child = fork();

	MUST(child >= 0);
	if (!child) {
		tree_pass();
		_exit(0);
	}
	stat_file = open_of(child, "/stat", O_RDONLY);
	read_file = open_of(child, "/stat", O_RDONLY);
	memory = open_of(child, "/mem", O_RDWR);
	maps = open_of(child, "/maps", O_RDONLY);
	directory = open_of(child, "", O_RDONLY | O_DIRECTORY);
	path = open_of(child, "", O_PATH);
	task = open_of(child, "/task", O_RDONLY | O_DIRECTORY);
	network = open_of(child, "/net/dev", O_RDONLY);
	MUST(read(network, network_text, 20) == 20);
	while (read(read_file, text, sizeof(text)) > 0)
		;
	for (size_t i = 0; i < PLACES; i++)
		place[i] = open_of(child, places[i], O_RDONLY | O_DIRECTORY);
	tree_open(1);
	MUST(waitpid(child, NULL, 0) == child);
}

static void prepare_thread(void)
{
	pthread_t thread;
	DIR *dir;

	MUST(!pthread_create(&thread, NULL, (void *(*)(void *))tree_pass, NULL));
	dir = opendir("/proc/self/task");
	MUST(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		char name[64];
		int file;

		if (atoi(e->d_name) == getpid() || e->d_name[0] == '.')
			continue;
		/* A thread that has been joined may just be going. */
		snprintf(name, sizeof(name), "/proc/self/task/%.20s/stat", e->d_name);
		file = open(name, O_RDONLY | O_CLOEXEC);
		if (file < 0)
			continue;
		if (thread_file > 0)
			close(thread_file);
		thread_file = file;
	}
	closedir(dir);
	MUST(thread_file > 0);
	tree_open(1);
	pthread_join(thread, NULL);
	/* What pthread_join(3) waits for comes a moment before the thread has ended. */
	while (pread(thread_file, (char[8]){0}, 8, 0) > 0)
		usleep(500);
}

static bool is_gone(int fd)
{
	errno = 0;
	return read(fd, (char[8]){0}, 8) < 0 && errno == ESRCH;
}

static void check_directory(int fd)
{
	char data[1024];
	struct stat st;

	CHECK(!fstat(fd, &st) && S_ISDIR(st.st_mode), "it is no directory");
	CHECK(openat(fd, "stat", O_RDONLY) < 0 && (errno == ESRCH || errno == ENOENT),
		"a file in it: %s", strerror(errno));
	CHECK(syscall(SYS_getdents64, fd, data, sizeof(data)) < 0 && errno == ENOENT,
		"its entries: %s", strerror(errno));
}

static void check_living(pid_t child)
{
	struct stat st, named;
	char name[64];

	CHECK(fcntl(own, F_GETFL) & O_PATH, "O_PATH");
	CHECK(!fstat(own, &st) && !stat("/proc/self", &named) && st.st_ino == named.st_ino,
		"its own directory is another's");
	snprintf(name, sizeof(name), "/proc/%d/task", child);
	CHECK(!fstat(childs, &st) && !stat(name, &named) && st.st_ino == named.st_ino,
		"the child's directory is another's");
}

int main(void)
{
	pid_t child;

	victim_thread(nothing, NULL);
	prepare_process();
	prepare_thread();
	child = tree_child(NULL, NULL);
	tree_await(1);
	own = open_of(getpid(), "", O_PATH | O_DIRECTORY);
	childs = open_of(child, "/task", O_PATH);
	victim_ready();
	victim_wait();
	CHECK(is_gone(stat_file), "stat: %s", strerror(errno));
	CHECK(is_gone(thread_file), "stat of a thread: %s", strerror(errno));
	CHECK(!read(read_file, (char[8]){0}, 8), "more in a file that was read");
	CHECK(!read(memory, (char[8]){0}, 8), "mem: %s", strerror(errno));
	CHECK(!read(maps, (char[8]){0}, 8) || errno == ESRCH, "maps: %s", strerror(errno));
	check_directory(directory);
	check_directory(task);
	check_places();
	CHECK(fcntl(path, F_GETFL) & O_PATH && faccessat(path, "stat", F_OK, 0), "O_PATH");
	CHECK(lseek(network, 0, SEEK_CUR) == 20 && !lseek(network, 0, SEEK_SET) &&
			read(network, network_text + 20, 20) == 20 &&
			!memcmp(network_text, network_text + 20, 20),
		"the network");
	check_living(child);
	tree_finish(1);
	tree_reap(child, 0);
	return victim_done();
}
