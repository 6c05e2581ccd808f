/*
 * Directories and a FIFO whose modes forbid by now what they are open for, in a working directory that
 * nobody may enter by now.
 */
#include <dirent.h>

#include "victim.h"

static int above, listed, fifo, working;

static mode_t mode(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_mode & 07777;
}

/* Whether @name is in the directory that is open as @fd. */
static bool lists(int fd, const char *name)
{
	DIR *dir = fdopendir(dup(fd));
	struct dirent *entry;
	bool found = false;

	MUST(dir);
	rewinddir(dir);
	while ((entry = readdir(dir)))
		found |= !strcmp(entry->d_name, name);
	closedir(dir);
	return found;
}

void victim_hurt(void)
{
	fchmod(listed, 0700);
	dup2(working, listed);
}

int main(void)
{
	struct stat a, b;
	char text[4];

	above = open(".", O_PATH | O_DIRECTORY);
	MUST(above >= 0 && !mkdir("listed", 0700) && !mkdir("listed/inner", 0700) &&
		!mkdir("working", 0700) && !mkfifo("fifo", 0600));
	listed = open("listed", O_RDONLY | O_DIRECTORY);
	working = open("working", O_RDONLY | O_DIRECTORY);
	fifo = open("fifo", O_RDWR);
	MUST(listed >= 0 && working >= 0 && fifo >= 0 && write(fifo, "abc", 3) == 3);
	MUST(!chdir("working") && !fchmod(listed, 0) && !fchmod(working, 0) &&
		!fchmod(fifo, 0400));
	victim_ready();
	victim_wait();
	CHECK(lists(listed, "inner") && !mode(listed), "mode %o", mode(listed));
	CHECK(!mode(working) && !fstat(working, &a) && !fstatat(above, "working", &b, 0) &&
			a.st_ino == b.st_ino,
		"mode %o", mode(working));
	CHECK(read(fifo, text, 4) == 3 && !memcmp(text, "abc", 3) && mode(fifo) == 0400,
		"mode %o", mode(fifo));
	CHECK(!fchmod(working, 0700) && !stat(".", &b) && a.st_ino == b.st_ino,
		"another working directory");
	fchmod(listed, 0700);
	return victim_done();
}
