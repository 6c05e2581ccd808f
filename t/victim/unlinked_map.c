/* A mapped file whose name is gone: private with changed pages, and shared. */
#include "victim.h"

static char *p, *s, *t;

void victim_hurt(void)
{
	mmap(p, 64 * KIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

int main(void)
{
	int fd = victim_file("gone", 64 * KIB, 1), other = victim_file("gone-too", 64 * KIB, 2);

	p = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	s = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	t = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	MUST(p != MAP_FAILED && s != MAP_FAILED && t != MAP_FAILED);
	victim_fill(p + 4096, 4096, 3);
	MUST(!unlink("gone") && !unlink("gone-too"));
	close(fd);
	close(other);
	victim_ready();
	victim_wait();
	SAME(p, 4096, 1, "unchanged page of an unlinked file");
	SAME(p + 4096, 4096, 3, "changed page of an unlinked file");
	SAME(s, 64 * KIB, 2, "shared mapping of an unlinked file");
	s[9000] = 'x';
	CHECK(t[9000] == 'x', "two mappings of it are no longer one");
	CHECK(access("gone", F_OK) && access("gone-too", F_OK), "the names are back");
	return victim_done();
}
