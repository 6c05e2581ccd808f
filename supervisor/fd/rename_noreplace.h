/*
 * fd/rename_noreplace.h - rename(2) that replaces nothing, on each file system.
 */
#ifndef SUPERVISOR_FD_RENAME_NOREPLACE_H
#define SUPERVISOR_FD_RENAME_NOREPLACE_H

/* Rename @from in the directory @in to @to in the directory @there, which must not exist. -1 with errno (EEXIST: it
 * does). Where the file system does not know RENAME_NOREPLACE (NFS, 9p, much of FUSE), a file has both names for
 * a moment; if it has no hard links either, or for a directory, an empty file or directory is @to for a moment. If
 * we are killed then, that stays, and nothing is lost. */
int fd_rename_noreplace(int in, const char *from, int there, const char *to);

#endif
