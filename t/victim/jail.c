/* A root directory of its own (chroot(2)), with files, a mapping and a descriptor of a
 * directory outside of it. */
#include "victim.h"

static int outside, inside;
static char *mapped;

void victim_hurt(void)
{
	MUST(!fchdir(outside) && !chroot("."));
}

static bool same_file(const char *name, int fd)
{
	struct stat of_name, of_fd;

	return !stat(name, &of_name) && !fstat(fd, &of_fd) && of_name.st_ino == of_fd.st_ino &&
	       of_name.st_dev == of_fd.st_dev;
}

int main(void)
{
	char directory[64] = "";

	outside = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(outside >= 0 && !mkdir("jail", 0755) && !mkdir("jail/sub", 0755));
	if (chroot("jail"))
		victim_skip("chroot is not permitted");
	MUST(!chdir("/sub"));
	inside = victim_file("/sub/file", 4096, 1);
	mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, inside, 0);
	MUST(mapped != MAP_FAILED);
	victim_ready();
	victim_wait();
	CHECK(same_file("/sub/file", inside) && same_file("file", inside), "%s",
		strerror(errno));
	SAME(mapped, 4096, 1, "mapping");
	CHECK(getcwd(directory, sizeof(directory)) && !strcmp(directory, "/sub"),
		"the working directory is %s", directory);
	CHECK(!chdir("../..") && getcwd(directory, sizeof(directory)) &&
			!strcmp(directory, "/"),
		"above the root there is %s", directory);
	CHECK(access("/jail", F_OK) && !faccessat(outside, "jail/sub", F_OK, 0),
		"the directory outside");
	return victim_done();
}
