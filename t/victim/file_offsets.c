/* Offsets and flags of regular files: shared between duplicates, apart between two opens,
 * O_APPEND, close-on-exec, read-only, a high number, gaps between numbers. */
#include <sys/resource.h>

#include "victim.h"

static int fd, copy, other, append, ro, wo, quiet;

void victim_hurt(void)
{
	int again = open("offsets", O_RDWR);

	lseek(again, lseek(fd, 0, SEEK_CUR), SEEK_SET);
	dup3(again, copy, 0);
	lseek(other, 0, SEEK_SET);
}

int main(void)
{
	struct rlimit limit;
	struct stat st, st2;
	char text[16] = "";
	int high, flags;

	fd = victim_file("offsets", 8192, 1);
	getrlimit(RLIMIT_NOFILE, &limit);
	high = limit.rlim_cur > 1000 ? 1000 : limit.rlim_cur - 1;
	copy = dup(fd);
	MUST(dup3(fd, high, O_CLOEXEC) == high);
	other = open("offsets", O_RDWR);
	append = open("append", O_WRONLY | O_APPEND | O_CREAT | O_TRUNC, 0640);
	ro = open("offsets", O_RDONLY | O_NONBLOCK);
	wo = open("offsets", O_WRONLY | O_CLOEXEC | O_SYNC);
	quiet = open("offsets", O_RDONLY | O_NOATIME);
	MUST(quiet > 0 && copy > 0 && other > 0 && append > 0 && ro > 0 && wo > 0);
	MUST(lseek(fd, 1000, SEEK_SET) == 1000 && lseek(other, 2000, SEEK_SET) == 2000);
	MUST(lseek(ro, 100000, SEEK_SET) == 100000);
	MUST(write(append, "first ", 6) == 6);
	flags = fcntl(wo, F_GETFL);
	MUST(dup2(ro, 300) == 300 && !close(ro));
	ro = 300;
	victim_ready();
	victim_wait();
	CHECK(lseek(fd, 0, SEEK_CUR) == 1000, "offset is %lld",
		(long long)lseek(fd, 0, SEEK_CUR));
	CHECK(lseek(other, 0, SEEK_CUR) == 2000, "offset of another open is %lld",
		(long long)lseek(other, 0, SEEK_CUR));
	CHECK(lseek(fd, 50, SEEK_SET) == 50 && lseek(copy, 0, SEEK_CUR) == 50 &&
			lseek(high, 0, SEEK_CUR) == 50,
		"duplicates no longer share an offset");
	CHECK(lseek(other, 0, SEEK_CUR) == 2000, "another open has come to share it");
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && !fcntl(copy, F_GETFD) &&
			fcntl(high, F_GETFD) == FD_CLOEXEC &&
			fcntl(wo, F_GETFD) == FD_CLOEXEC && !fcntl(ro, F_GETFD),
		"close-on-exec: %d %d %d", fcntl(fd, F_GETFD), fcntl(copy, F_GETFD),
		fcntl(high, F_GETFD));
	CHECK(lseek(ro, 0, SEEK_CUR) == 100000, "offset beyond the end");
	CHECK(write(ro, "x", 1) < 0 && errno == EBADF, "the read-only one can be written");
	CHECK(read(wo, text, 1) < 0 && errno == EBADF, "the write-only one can be read");
	CHECK(fcntl(wo, F_GETFL) == flags, "flags are %o, were %o", fcntl(wo, F_GETFL), flags);
	CHECK(fcntl(ro, F_GETFL) & O_NONBLOCK, "O_NONBLOCK");
	CHECK(fcntl(quiet, F_GETFL) & O_NOATIME, "O_NOATIME");
	CHECK(fcntl(ro + 1, F_GETFD) < 0 && fcntl(high - 1, F_GETFD) < 0,
		"there are descriptors that were not there");
	/* Another process may append meanwhile: O_APPEND writes behind it. */
	high = open("append", O_WRONLY | O_APPEND);
	MUST(write(high, "theirs ", 7) == 7);
	MUST(write(append, "mine", 4) == 4);
	high = open("append", O_RDONLY);
	memset(text, 0, sizeof(text));
	flags = read(high, text, 15);
	CHECK(flags == 15 && !memcmp(text, "first theirs mi", 15), "file has '%s'", text);
	MUST(!fstat(append, &st) && !stat("append", &st2));
	CHECK(st.st_ino == st2.st_ino && (st.st_mode & 0777) == 0640, "another file");
	return victim_done();
}
