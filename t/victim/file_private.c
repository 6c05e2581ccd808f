/* A private file mapping: some pages changed, the rest still the file's. */
#include "victim.h"

static char *p;

void victim_hurt(void)
{
	p[8 * 4096] ^= 1;
}

int main(void)
{
	int fd = victim_file("data", 256 * KIB, 1);
	char byte, *own = malloc(256 * KIB);

	p = mmap(NULL, 256 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	MUST(p != MAP_FAILED);
	for (int i = 0; i < 64; i += 8)
		victim_fill(p + i * 4096, 4096, 100 + i);
	close(fd);
	victim_ready();
	victim_wait();
	victim_fill(own, 256 * KIB, 1);
	for (int i = 0; i < 64; i++) {
		if (i % 8 == 0)
			SAME(p + i * 4096, 4096, 100 + i, "changed page");
		else
			CHECK(!memcmp(p + i * 4096, own + i * 4096, 4096),
				"page %d is not the file's", i);
	}
	/* Private it stays. */
	p[4096] ^= 0xff;
	fd = open("data", O_RDWR);
	MUST(fd >= 0);
	CHECK(pread(fd, &byte, 1, 4096) == 1 && byte == own[4096], "the file was written");
	/* An untouched page still follows the file. */
	MUST(pwrite(fd, "hello", 5, 3 * 4096) == 5);
	CHECK(!memcmp(p + 3 * 4096, "hello", 5), "page no longer maps the file");
	return victim_done();
}
