/*
 * lock_reach.c - finds the options of the file system's mount that decide it.
 */
#include "ckpt/lock_reach.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "lib/util.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#define ZFS_SUPER_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC  0xca451a4e

/* Of one machine at a time. */
static bool is_local(int fd)
{
	static const uint32_t local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, OVERLAYFS_SUPER_MAGIC,
		ZFS_SUPER_MAGIC, BCACHEFS_MAGIC};
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if ((uint32_t)fs.f_type == local[i])
			return true;
	return false;
}

static bool has_option(const char *options, const char *option)
{
	size_t n = strlen(option);

	for (const char *p = options; (p = strstr(p, option)); p += n)
		if ((p == options || p[-1] == ',') && (!p[n] || strchr(",\n", p[n])))
			return true;
	return false;
}

/* As mounted: nfs(5), mount.lustre(8). Of Ceph and GPFS all locks are for all machines. */
static bool is_for_all(const char *type, const char *options)
{
	if (!strncmp(type, "nfs", 3))
		return has_option(options, "local_lock=none") && !has_option(options, "nolock");
	if (!strcmp(type, "lustre"))
		return has_option(options, "flock");
	return !strcmp(type, "ceph") || !strcmp(type, "gpfs");
}

/* Its line in /proc/self/mountinfo: "... MAJOR:MINOR ... - TYPE SOURCE OPTIONS". */
static bool is_mounted_for_all(int fd)
{
	cleanup_free char *text = NULL;
	unsigned major, minor;
	struct stat st;
	size_t len;

	if (fstat(fd, &st) || read_file("/proc/self/mountinfo", &text, &len, NULL))
		return false;
	for (char *line = text, *end; line && *line; line = end) {
		char type[32], options[1024] = "";
		const char *rest;

		end = strchr(line, '\n');
		if (end)
			*end++ = 0;
		rest = strstr(line, " - ");
		if (rest && sscanf(line, "%*d %*d %u:%u", &major, &minor) == 2 &&
			makedev(major, minor) == st.st_dev &&
			sscanf(rest, " - %31s %*s %1023s", type, options) >= 1)
			return is_for_all(type, options);
	}
	return false;
}

bool lock_reaches_all(int fd)
{
	return is_local(fd) || is_mounted_for_all(fd);
}
