/*
 * fd/handle.h - the names of files that are watched.
 *
 * The kernel tells a watch by the file's handle, not by its name. Who may open files by handle
 * (CAP_DAC_READ_SEARCH) gets the name from that; for others it is looked for where programs
 * have their watches mostly: among the files and directories that the tree has open or works
 * in, what is above them, and what is in them.
 */
#ifndef SUPERVISOR_FD_HANDLE_H
#define SUPERVISOR_FD_HANDLE_H

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

/* A path of that file for process @task, the caller's to free; NULL: not found. */
char *fd_handle_find(const struct fd_handle *h, pid_t task);

#endif
