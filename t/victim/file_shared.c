/* A shared file mapping: writes reach the file, before and after. With an argument, the mapping
 * alone leads to it meanwhile. */
#include "victim.h"

static char *p;
static int fd;

void victim_hurt(void)
{
	mmap(p, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
}

int main(int argc, char **argv)
{
	char text[8] = "";

	fd = victim_file("shared", 64 * KIB, 1);
	p = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(p != MAP_FAILED);
	victim_fill(p + 8192, 8192, 2);
	if (argc > 1)
		close(fd);
	victim_ready();
	victim_wait();
	if (argc > 1)
		MUST((fd = open("shared", O_RDWR)) >= 0);
	SAME(p, 8192, 1, "what the file held");
	SAME(p + 8192, 8192, 2, "what was written through the mapping");
	memcpy(p + 100, "through", 7);
	CHECK(pread(fd, text, 7, 100) == 7 && !strcmp(text, "through"),
		"the file does not get what is written to the mapping: '%s'", text);
	MUST(pwrite(fd, "back", 4, 20000) == 4);
	CHECK(!memcmp(p + 20000, "back", 4), "the mapping does not see the file");
	CHECK(!msync(p, 64 * KIB, MS_SYNC), "%s", strerror(errno));
	return victim_done();
}
