/*
 * Pages of hugetlbfs, where the machine has any set aside.
 *
 *	hugetlb				private memory
 *	hugetlb shared			shared with a child
 *	hugetlb memfd | sealed		mapped twice; sealed: no longer to be resized
 *	hugetlb unlinked DIR		the same, a file in DIR whose name is gone
 *	hugetlb private-memfd		a mapping that does not share what is written, and another that does
 *	hugetlb sysv			a System V segment of a page and a half, removed
 *	hugetlb sysv-detached		one that is attached nowhere
 */
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "victim.h"

#ifndef MFD_HUGETLB
#define MFD_HUGETLB 4u
#endif
#define SIZE (4 * MIB)
#define TOLD 0x70 /* what is written into one mapping to be seen in the other */

static char *p;
static char *other;   /* a second mapping of the same file */
static char *written; /* the same, where @p shows only pages that are not its own */
static int fd = -1, gate[2];
static pid_t child;

void victim_hurt(void)
{
	p[4096] ^= 1;
}

static char *map(int flags)
{
	void *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		victim_skip("no huge pages set aside");
	return at;
}

static void make_memfd(void)
{
	fd = memfd_create("huge", MFD_HUGETLB | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, SIZE))
		victim_skip("no huge pages");
}

static void make_unlinked(const char *dir)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/victim-XXXXXX", dir);
	fd = mkstemp(path);
	if (fd < 0 || ftruncate(fd, SIZE) || unlink(path))
		victim_skip("no file system of huge pages");
}

static void attach(int segment)
{
	p = shmat(segment, NULL, 0);
	MUST(p != (void *)-1);
}

static int make_segment(void)
{
	int segment = shmget(IPC_PRIVATE, 3 * MIB, IPC_CREAT | SHM_HUGETLB | 0600);
	if (segment < 0)
		victim_skip("no huge pages for System V");
	attach(segment);
	return segment;
}

/* Writes into the shared memory when the first process lets it. */
static void make_child(void)
{
	char c;

	MUST(!pipe(gate));
	child = fork();
	MUST(child >= 0);
	if (child)
		return;
	MUST(read(gate[0], &c, 1) == 1);
	p[SIZE - 1] = TOLD;
	_exit(0);
}

static void choose(const char *how, const char *dir)
{
	if (!strcmp(how, "shared")) {
		p = map(MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB);
		make_child();
		return;
	}
	if (!*how) {
		p = map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB);
		return;
	}
	if (dir)
		make_unlinked(dir);
	else
		make_memfd();
	if (!strcmp(how, "private-memfd")) {
		p = map(MAP_PRIVATE);
		written = map(MAP_SHARED);
		/* Of pages that the file has not, it gets its own when it reads them. */
		written[0] = TOLD;
		written[SIZE - 1] = TOLD;
		return;
	}
	p = map(MAP_SHARED);
	other = map(MAP_SHARED);
	if (!strcmp(how, "sealed"))
		MUST(!fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK));
}

static void check_file(const char *how)
{
	struct statfs fs;
	struct stat st;
	char c;

	if (fd < 0)
		return;
	CHECK(!fstatfs(fd, &fs) && fs.f_bsize == 2 * MIB, "its pages have %ld bytes",
		(long)fs.f_bsize);
	CHECK(!fstat(fd, &st) && st.st_size == SIZE, "it has %lld bytes",
		(long long)st.st_size);
	CHECK(ftruncate(fd, 2 * SIZE) ? !strcmp(how, "sealed") : !!strcmp(how, "sealed"),
		"seals are not as they were");
	if (!other)
		return;
	p[SIZE - 1] = TOLD;
	CHECK(other[SIZE - 1] == TOLD, "the two mappings are no longer one");
	CHECK(pread(fd, &c, 1, SIZE - 1) == 1 && c == TOLD, "nor are they the file's");
}

/* The second page is not @p's own yet. It has zeros in the end. */
static void check_written(void)
{
	if (!written)
		return;
	CHECK(written[0] == TOLD && written[SIZE - 1] == TOLD && p[SIZE - 1] == TOLD,
		"what is in the file");
	written[SIZE - 1] = 0;
	CHECK(!p[SIZE - 1], "what is written to the file is not seen");
}

static void check_child(void)
{
	int status = -1;

	if (!child)
		return;
	MUST(write(gate[1], "", 1) == 1);
	CHECK(waitpid(child, &status, 0) == child && !status, "the child ended with %x",
		status);
	CHECK(p[SIZE - 1] == TOLD, "memory is no longer shared with the child");
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	bool removed = !strcmp(how, "sysv"), detached = !strcmp(how, "sysv-detached");
	int segment = removed || detached ? make_segment() : -1;
	struct victim_vma v;

	if (segment < 0)
		choose(how, argc > 2 ? argv[2] : NULL);
	victim_fill(p, 2 * MIB, 1);
	if (removed)
		MUST(!shmctl(segment, IPC_RMID, NULL));
	if (detached)
		MUST(!shmdt(p));
	victim_ready();
	victim_wait();
	if (detached) {
		attach(segment);
		MUST(!shmctl(segment, IPC_RMID, NULL));
	}
	check_written();
	SAME(p, 2 * MIB, 1, "huge page");
	ZERO(p + 2 * MIB, 2 * MIB, "untouched huge page");
	CHECK(victim_vma(p, &v) && v.page_kb == 2048, "pages of %lu KiB", v.page_kb);
	p[3 * MIB] = 1;
	CHECK(!written || !written[3 * MIB], "it writes to the file");
	check_file(how);
	check_child();
	return victim_done();
}
