/*
 * Files that cannot be opened again just as they were: of a mode that forbids it since (or from
 * the beginning: O_CREAT with 0444), under another name than they were opened by, with a name
 * of odd characters, also as it stands in /proc/PID/maps.
 */
#include "victim.h"

#define ODD "odd\n\\name \t(deleted)"

static int created, forbidden, renamed, linked, odd, dangling;
static char *private, *shared, *mapped;

static bool is_the_file(int fd, const char *name)
{
	struct stat of_fd, of_name;

	return !fstat(fd, &of_fd) && !stat(name, &of_name) && of_fd.st_ino == of_name.st_ino &&
	       of_fd.st_dev == of_name.st_dev;
}

static mode_t mode(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_mode & 07777;
}

void victim_hurt(void)
{
	fchmod(created, 0644);
	dup2(created, linked);
}

int main(void)
{
	int forbidden_too;
	struct stat st;
	char target[16], c;

	created = open("created", O_RDWR | O_CREAT | O_EXCL, 0444);
	forbidden = victim_file("forbidden", 800, 1);
	MUST(created >= 0 && write(created, "abc", 3) == 3 && !fchmod(forbidden, 0));
	renamed = victim_file("renamed", 800, 2);
	MUST(!rename("renamed", "renamed to"));
	linked = victim_file("linked", 800, 3);
	MUST(!link("linked", "linked to") && !unlink("linked"));
	odd = victim_file(ODD, 4096, 4);
	MUST(!symlink("nowhere", "dangling"));
	dangling = open("dangling", O_PATH | O_NOFOLLOW);
	MUST(dangling >= 0);
	private = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, odd, 0);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, odd, 0);
	MUST(private != MAP_FAILED && shared != MAP_FAILED);
	forbidden_too = victim_file("mapped", 4096, 5);
	mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, forbidden_too, 0);
	MUST(mapped != MAP_FAILED && !fchmod(forbidden_too, 0) && !close(forbidden_too));
	victim_ready();
	victim_wait();
	CHECK(write(created, "d", 1) == 1 && lseek(created, 0, SEEK_CUR) == 4, "%s",
		strerror(errno));
	CHECK(mode(created) == 0444 && is_the_file(created, "created"), "mode %o",
		mode(created));
	CHECK(write(forbidden, "d", 1) == 1 && mode(forbidden) == 0 &&
			is_the_file(forbidden, "forbidden"),
		"mode %o", mode(forbidden));
	CHECK(is_the_file(renamed, "renamed to") && access("renamed", F_OK), "renamed");
	CHECK(is_the_file(linked, "linked to") && access("linked", F_OK), "linked");
	CHECK(readlinkat(dangling, "", target, sizeof(target)) == 7 &&
			!memcmp(target, "nowhere", 7),
		"a link that leads nowhere");
	CHECK(is_the_file(odd, ODD), "odd");
	SAME(private, 4096, 4, "private mapping");
	SAME(shared, 4096, 4, "shared mapping");
	shared[0] ^= 1;
	CHECK(pread(odd, &private, 1, 0) == 1 && (char)(uintptr_t) private == shared[0],
		"what is written to the mapping is not in the file");
	SAME(mapped, 4096, 5, "shared mapping of a file that nobody may open");
	mapped[0] ^= 1;
	CHECK(!stat("mapped", &st) && !(st.st_mode & 0777), "mode %o", st.st_mode);
	CHECK(!chmod("mapped", 0600) && (forbidden_too = open("mapped", O_RDONLY)) >= 0 &&
			read(forbidden_too, &c, 1) == 1 && c == mapped[0],
		"what is written to it is not in the file");
	return victim_done();
}
