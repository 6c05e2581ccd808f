/*
 * Times, extended attributes, inode flags and the hint about what is written, of what a restart makes
 * anew: an unlinked file, a memfd, a removed directory.
 */
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/xattr.h>

#include "victim.h"

static const struct timespec times[2] = {{1000000000, 123456789}, {-987654321, 999999999}};
static const char value[] = "a\0b";
static struct {
	const char *name;
	int fd;
	bool extended;
	int flags;
	uint64_t hint;
} files[3] = {{.name = "file"}, {.name = "memfd"}, {.name = "directory"}};

void victim_hurt(void)
{
	futimens(files[0].fd, NULL);
}

static void make_files(void)
{
	files[0].fd = victim_file("nameless", 64 * KIB, 1);
	files[1].fd = memfd_create("memory", 0);
	MUST(!unlink("nameless") && files[1].fd >= 0 && write(files[1].fd, "x", 1) == 1);
	MUST(!mkdir("removed", 0700));
	files[2].fd = open("removed", O_RDONLY | O_DIRECTORY);
	MUST(files[2].fd >= 0 && !rmdir("removed"));
}

/* What a file system does not have, or only root may set, is left as it is. */
static void set_attributes(int fd)
{
	int flags = FS_APPEND_FL | FS_NODUMP_FL;
	uint64_t hint = RWH_WRITE_LIFE_LONG;

	(void)fsetxattr(fd, "user.trecr", value, sizeof(value), 0);
	(void)fsetxattr(fd, "user.empty", "", 0, 0);
	(void)fcntl(fd, F_SET_RW_HINT, &hint);
	MUST(!fchmod(fd, 0400) && !futimens(fd, times));
	if (ioctl(fd, FS_IOC_SETFLAGS, &flags)) {
		flags = FS_NODUMP_FL;
		(void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
	}
}

static int flags_of(int fd)
{
	int flags = 0;

	(void)ioctl(fd, FS_IOC_GETFLAGS, &flags);
	return flags & (FS_APPEND_FL | FS_NODUMP_FL);
}

static uint64_t hint_of(int fd)
{
	uint64_t hint = 0;

	(void)fcntl(fd, F_GET_RW_HINT, &hint);
	return hint;
}

static void check_file(size_t i)
{
	const char *name = files[i].name;
	int fd = files[i].fd;
	char got[16];
	struct stat st;

	CHECK(!fstat(fd, &st) && (st.st_mode & 07777) == 0400, "%s: mode %o", name, st.st_mode);
	CHECK(st.st_atim.tv_sec == times[0].tv_sec && st.st_atim.tv_nsec == times[0].tv_nsec,
		"%s: read at %ld.%09ld", name, st.st_atim.tv_sec, st.st_atim.tv_nsec);
	CHECK(st.st_mtim.tv_sec == times[1].tv_sec && st.st_mtim.tv_nsec == times[1].tv_nsec,
		"%s: written at %ld.%09ld", name, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	CHECK(flags_of(fd) == files[i].flags, "%s: flags %#x", name, flags_of(fd));
	CHECK(hint_of(fd) == files[i].hint, "%s: hint %lu", name, (unsigned long)hint_of(fd));
	if (!files[i].extended)
		return;
	CHECK(fgetxattr(fd, "user.trecr", got, sizeof(got)) == sizeof(value) &&
			!memcmp(got, value, sizeof(value)),
		"%s: its extended attribute: %s", name, strerror(errno));
	CHECK(fgetxattr(fd, "user.empty", got, sizeof(got)) == 0, "%s: an empty one", name);
}

int main(void)
{
	make_files();
	for (size_t i = 0; i < 3; i++) {
		char got[16];

		set_attributes(files[i].fd);
		files[i].extended = fgetxattr(files[i].fd, "user.trecr", got, sizeof(got)) > 0;
		files[i].flags = flags_of(files[i].fd);
		files[i].hint = hint_of(files[i].fd);
	}
	victim_ready();
	victim_wait();
	for (size_t i = 0; i < 3; i++)
		check_file(i);
	return victim_done();
}
