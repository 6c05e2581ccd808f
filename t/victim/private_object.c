/*
 * Private mappings of files without a name: what is written to the file later is seen through
 * pages that the process has not made its own. And a file in memory that can be executed after
 * a restart as before, though it is mapped.
 */
#include <sys/wait.h>

#include "victim.h"

static char *mapped, *shared;
static int memory, script;

void victim_hurt(void)
{
	mmap(mapped, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		-1, 0);
}

static char *map_private(int fd)
{
	char *p = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	MUST(p != MAP_FAILED);
	p[4096] = 'm';
	/* All zeros, where the file has something. */
	memset(p + 2 * 4096, 0, 4096);
	return p;
}

static int fill(int fd)
{
	MUST(fd >= 0);
	for (int i = 0; i < 4 * 4096; i += 4096)
		MUST(pwrite(fd, "file", 4, i) == 4);
	return fd;
}

static void check_mapping(char *p, int fd)
{
	CHECK(!memcmp(p, "file", 4) && !memcmp(p + 4096, "mile", 4) && !p[2 * 4096] &&
			!memcmp(p + 3 * 4096, "file", 4),
		"contents");
	CHECK(pwrite(fd, "FILE", 4, 0) == 4 && pwrite(fd, "FILE", 4, 4096) == 4, "%m");
	CHECK(!memcmp(p, "FILE", 4), "what is written to the file is not seen");
	CHECK(!memcmp(p + 4096, "mile", 4), "nor is a page its own any more");
	p[3 * 4096] = 'p';
	CHECK(pread(fd, p, 4, 3 * 4096) == 4 && !memcmp(p, "file", 4), "it writes to the file");
}

static char *map_unlinked(int *fd)
{
	*fd = fill(open("unlinked", O_RDWR | O_CREAT, 0600));
	MUST(!unlink("unlinked"));
	return map_private(*fd);
}

/* It can be written to, by the descriptor that memfd_create(2) gave. */
static void make_script(void)
{
	script = memfd_create("script", 0);
	MUST(script >= 0 && write(script, "#!/bin/sh\nexit 7\n", 17) == 17 &&
		!fchmod(script, 0700));
	shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, script, 0);
	MUST(shared != MAP_FAILED);
}

static void run_script(void)
{
	char path[64];
	int status = 0;
	pid_t pid = fork();

	snprintf(path, sizeof(path), "/proc/self/fd/%d", script);
	if (!pid) {
		execl(path, "script", NULL);
		_exit(errno);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 7 << 8, "status %x (%s)", status,
		strerror(WEXITSTATUS(status)));
}

/* Anonymous shared memory, mapped privately below where it is shared; NULL without a privilege.
 */
static char *map_anonymous(char **all)
{
	char path[64], *p;
	int fd;

	*all = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(*all != MAP_FAILED);
	**all = 'a';
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (long)*all,
		(long)*all + 4096);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return NULL;
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	MUST(p != MAP_FAILED && p < *all);
	close(fd);
	return p;
}

/* Mapped privately, at lower addresses, and shared, by descriptors that are closed. */
static void map_both(int fd, char **private, char **shared_too)
{
	char *p = mmap(NULL, 8 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	*private = mmap(p, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
	*shared_too =
		mmap(p + 4 * 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	MUST(*private == p && *shared_too == p + 4 * 4096 && !close(fd));
	p[4096] = 'm';
}

static void check_both(char *private, char *shared_too)
{
	CHECK(!memcmp(private, "file", 4) && !memcmp(private + 4096, "mile", 4) &&
			!memcmp(private + 3 * 4096, "file", 4),
		"contents without a descriptor");
	memcpy(shared_too, "FILE", 4);
	CHECK(!memcmp(private, "FILE", 4), "what is written to shared memory is not seen");
	CHECK(!munmap(shared_too, 4096) && !memcmp(private, "FILE", 4), "%m");
}

static int without_name(void)
{
	int fd = fill(open("without_name", O_RDWR | O_CREAT, 0600));

	MUST(!unlink("without_name"));
	return fd;
}

int main(void)
{
	char *unlinked, *all, *part = map_anonymous(&all), *of_memfd[2], *of_unlinked[2];
	int fd;

	memory = fill(memfd_create("memory", 0));
	mapped = map_private(memory);
	unlinked = map_unlinked(&fd);
	make_script();
	map_both(fill(memfd_create("both", 0)), &of_memfd[0], &of_memfd[1]);
	map_both(without_name(), &of_unlinked[0], &of_unlinked[1]);
	victim_ready();
	victim_wait();
	check_mapping(mapped, memory);
	check_mapping(unlinked, fd);
	*all = 'b';
	CHECK(!part || *part == 'b', "what is written to shared memory is not seen");
	check_both(of_memfd[0], of_memfd[1]);
	check_both(of_unlinked[0], of_unlinked[1]);
	run_script();
	CHECK(!memcmp(shared, "#!/bin/sh", 9), "the mapping of the script");
	return victim_done();
}
