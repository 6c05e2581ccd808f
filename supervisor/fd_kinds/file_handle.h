/*
 * fd_kinds/file_handle.h - the names of files that are watched.
 *
 * The kernel tells a watch by the file's handle, not by its name. Who may open files by handle
 * (CAP_DAC_READ_SEARCH) gets the name from that; for others it is searched for
 * (fd_kinds/watched_file_names.h).
 */
#ifndef SUPERVISOR_FD_KINDS_FILE_HANDLE_H
#define SUPERVISOR_FD_KINDS_FILE_HANDLE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fd_handle {
	uint64_t inode;
	unsigned device; /* as the kernel has it inside */
	unsigned bytes;  /* of the handle; 0: not told */
	unsigned type;
	const char *text; /* in hexadecimal; part of the line read */
};

/* From a line of fdinfo: "... ino:7ef82a sdev:800001 ... fhandle-bytes:8 fhandle-type:1
 * f_handle:2af87e00220ffd73" (Documentation/filesystems/proc.rst). -1: it is none. */
int fd_handle_read(const char *line, struct fd_handle *h);

dev_t fd_handle_device(const struct fd_handle *h);
bool fd_handle_leads_to(const struct fd_handle *h, const char *path);

/* Of @count files, find the paths that are NULL in @paths, for process @task. They are the caller's
 * to free; NULL: not found. */
void fd_handles_find(const struct fd_handle *h, size_t count, pid_t task, char **paths);
char *fd_handle_find(const struct fd_handle *h, pid_t task);

/* The next place in the text *@mountinfo where @device is mounted, and what follows it there.
 */
bool fd_mount_next(const char **mountinfo, dev_t device, char mount[PATH_MAX]);

#endif
