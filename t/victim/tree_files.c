/*
 * Processes that have as many files open, all together, as one alone may have: a restart has no
 * room for any of them twice. Some they share, at the same numbers and at others.
 */
#include <sys/resource.h>

#include "tree.h"

#define CHILDREN 4

static int common, files, first;

static void open_files(void)
{
	char name[32];
	int fd;

	for (int i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "%d.%d", getpid(), i);
		fd = open(name, O_RDWR | O_CREAT, 0600);
		if (!i)
			first = fd;
		MUST(fd == first + i && lseek(fd, 10 + i, SEEK_SET) == 10 + i);
	}
}

static void prepare(void)
{
	open_files();
	/* Where the first process has another file, and that is seen by the others. */
	MUST(dup2(common, first + 1) == first + 1 && dup2(first, common) == common);
}

static void check_files(void)
{
	for (int i = 2; i < files; i++)
		CHECK(lseek(first + i, 0, SEEK_CUR) == 10 + i, "descriptor %d is at %ld",
			first + i, (long)lseek(first + i, 0, SEEK_CUR));
}

static void check_descriptors(void)
{
	check_files();
	CHECK(lseek(common, 0, SEEK_CUR) == 10, "descriptor %d is at %ld", common,
		(long)lseek(common, 0, SEEK_CUR));
	CHECK(write(first + 1, "x", 1) == 1, "write: %m");
}

void victim_hurt(void)
{
	lseek(first + 5, 0, SEEK_SET);
}

int main(void)
{
	struct rlimit limit;
	pid_t children[CHILDREN];

	MUST(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur >= 128);
	files = 100 / (CHILDREN + 1) - 1;
	MUST((common = open("common", O_RDWR | O_CREAT, 0600)) >= 0);
	for (int i = 0; i < CHILDREN; i++)
		children[i] = tree_child(prepare, check_descriptors);
	open_files();
	tree_await(CHILDREN);
	victim_ready();
	victim_wait();
	check_files();
	tree_finish(CHILDREN);
	CHECK(lseek(common, 0, SEEK_CUR) == CHILDREN, "the common file is at %ld",
		(long)lseek(common, 0, SEEK_CUR));
	for (int i = 0; i < CHILDREN; i++)
		tree_reap(children[i], 0);
	return victim_done();
}
