/* Files without a name: unlinked while open (twice, sharing contents), and O_TMPFILE. */
#include "victim.h"

static int fd, second, tmp;

void victim_hurt(void)
{
	dup2(victim_file("copy", 64 * KIB, 1), second);
}

int main(void)
{
	char data[8192], byte;
	struct stat st;

	fd = victim_file("nameless", 64 * KIB, 1);
	second = open("nameless", O_RDONLY);
	MUST(second > 0 && !unlink("nameless"));
	tmp = open(".", O_TMPFILE | O_RDWR, 0600);
	if (tmp < 0)
		tmp = victim_file("tmp", 0, 0), unlink("tmp");
	victim_fill(data, sizeof(data), 2);
	MUST(pwrite(tmp, data, 8192, 10 * MIB) == 8192);
	MUST(!fchmod(fd, 0640));
	MUST(lseek(fd, 30000, SEEK_SET) == 30000 && lseek(second, 7, SEEK_SET) == 7);
	victim_ready();
	victim_wait();
	CHECK(access("nameless", F_OK) < 0, "the name is back");
	CHECK(!fstat(fd, &st) && st.st_size == 64 * (long)KIB, "size is %lld",
		(long long)st.st_size);
	CHECK((st.st_mode & 07777) == 0640, "mode %o", st.st_mode);
	CHECK(st.st_nlink == 0, "it has %d names", (int)st.st_nlink);
	for (int i = 0; i < 8; i++) {
		CHECK(pread(fd, data, 8192, i * 8192) == 8192, "%s", strerror(errno));
		for (int j = 0; j < 1024; j++)
			if (((uint64_t *)data)[j] != victim_word(1, i * 1024 + j)) {
				CHECK(0, "word %d", i * 1024 + j);
				break;
			}
	}
	CHECK(lseek(fd, 0, SEEK_CUR) == 30000 && lseek(second, 0, SEEK_CUR) == 7,
		"offsets %lld %lld", (long long)lseek(fd, 0, SEEK_CUR),
		(long long)lseek(second, 0, SEEK_CUR));
	MUST(pwrite(fd, "Z", 1, 40000) == 1);
	CHECK(pread(second, &byte, 1, 40000) == 1 && byte == 'Z',
		"two opens of it are two files");
	CHECK(write(second, "x", 1) < 0 && errno == EBADF, "the read-only one can be written");
	CHECK(!fstat(tmp, &st) && st.st_size == 10 * (long)MIB + 8192, "size is %lld",
		(long long)st.st_size);
	CHECK(st.st_blocks < 4096, "a hole has become %lld blocks", (long long)st.st_blocks);
	CHECK(pread(tmp, data, 8192, 10 * MIB) == 8192, "%s", strerror(errno));
	SAME(data, 8192, 2, "O_TMPFILE");
	CHECK(pread(tmp, data, 4096, MIB) == 4096, "%s", strerror(errno));
	ZERO(data, 4096, "hole");
	CHECK(write(tmp, "more", 4) == 4 && !ftruncate(fd, 100), "%s", strerror(errno));
	return victim_done();
}
