/*
 * fd_kinds/watch_handle.h - the paths of watched files (inotify, fanotify), found from their file handles.
 *
 * The kernel shows which file a watch is on by the file's handle, not by its path. With CAP_DAC_READ_SEARCH
 * the path is found by opening the handle; without, it is searched for (fd_kinds/watched_file_names.h).
 */
#ifndef SUPERVISOR_FD_KINDS_WATCH_HANDLE_H
#define SUPERVISOR_FD_KINDS_WATCH_HANDLE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The file of one watch, as /proc/PID/fdinfo shows it. */
struct watch_handle {
	uint64_t inode;
	unsigned device; /* as the kernel has it inside */
	unsigned bytes;  /* of the handle; 0: not told */
	unsigned type;
	const char *text; /* in hexadecimal; part of the line read */
};

/* From a line of fdinfo: "... ino:7ef82a sdev:800001 ... fhandle-bytes:8 fhandle-type:1
 * f_handle:2af87e00220ffd73" (Documentation/filesystems/proc.rst). -1: it is none. */
int watch_handle_read(const char *line, struct watch_handle *h);

dev_t watch_handle_device(const struct watch_handle *h);
bool watch_handle_leads_to(const struct watch_handle *h, const char *path);

/* Of @count files, find the paths that are NULL in @paths, for process @task. They are the caller's
 * to free; NULL: not found. */
void watch_paths_find(const struct watch_handle *h, size_t count, pid_t task, char **paths);
char *watch_path_find(const struct watch_handle *h, pid_t task);

/* The next place in the text *@mountinfo where @device is mounted, and what follows it there.
 */
bool fd_mount_next(const char **mountinfo, dev_t device, char mount[PATH_MAX]);

#endif
