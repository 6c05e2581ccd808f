/*
 * extra_fds.c - one list for each process: files of the image, mapped files, objects, and of
 * threads with tables of their own.
 */
#include "supervisor/state/extra_fds.h"

#include "lib/util.h"

int *extra_source_slot(struct extra_fds *f, size_t i)
{
	return &f->fd[i];
}

int *extra_module_slot(struct extra_fds *f, size_t i, bool writable)
{
	return &f->fd[f->sources + EXTRA_MODULE_SLOTS * i + writable];
}

int *extra_object_slot(struct extra_fds *f, size_t i)
{
	return &f->fd[f->sources + EXTRA_MODULE_SLOTS * f->modules + f->threads + i];
}

int *extra_thread_slot(struct extra_fds *f, size_t i)
{
	return &f->fd[f->sources + EXTRA_MODULE_SLOTS * f->modules + i];
}

int extra_thread(const struct extra_fds *f, size_t i)
{
	BUG_ON(i >= f->threads);
	return *extra_thread_slot((struct extra_fds *)f, i);
}

int extra_source(const struct extra_fds *f, size_t i)
{
	BUG_ON(i >= f->sources);
	return *extra_source_slot((struct extra_fds *)f, i);
}

int extra_module(const struct extra_fds *f, size_t i, bool writable)
{
	BUG_ON(i >= f->modules);
	return *extra_module_slot((struct extra_fds *)f, i, writable);
}

int extra_object(const struct extra_fds *f, size_t i)
{
	BUG_ON(i >= f->objects);
	return *extra_object_slot((struct extra_fds *)f, i);
}
