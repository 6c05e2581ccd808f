/*
 * restart_fds.c - one list for each process: files of the image, mapped files, objects, and of
 * threads with tables of their own.
 */
#include "supervisor/state/restart_fds.h"

#include "lib/util.h"

int *restart_fd_source_slot(struct restart_fds *f, size_t i)
{
	return &f->fd[i];
}

int *restart_fd_module_slot(struct restart_fds *f, size_t i, bool writable)
{
	return &f->fd[f->sources + RESTART_FD_MODULE_SLOTS * i + writable];
}

int *restart_fd_object_slot(struct restart_fds *f, size_t i)
{
	return &f->fd[f->sources + RESTART_FD_MODULE_SLOTS * f->modules + f->threads + i];
}

int *restart_fd_thread_slot(struct restart_fds *f, size_t i)
{
	return &f->fd[f->sources + RESTART_FD_MODULE_SLOTS * f->modules + i];
}

int restart_fd_thread(const struct restart_fds *f, size_t i)
{
	BUG_ON(i >= f->threads);
	return *restart_fd_thread_slot((struct restart_fds *)f, i);
}

int restart_fd_source(const struct restart_fds *f, size_t i)
{
	BUG_ON(i >= f->sources);
	return *restart_fd_source_slot((struct restart_fds *)f, i);
}

int restart_fd_module(const struct restart_fds *f, size_t i, bool writable)
{
	BUG_ON(i >= f->modules);
	return *restart_fd_module_slot((struct restart_fds *)f, i, writable);
}

int restart_fd_object(const struct restart_fds *f, size_t i)
{
	BUG_ON(i >= f->objects);
	return *restart_fd_object_slot((struct restart_fds *)f, i);
}
