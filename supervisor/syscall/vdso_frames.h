/*
 * vdso_frames.h - signal handlers that interrupted code of the vdso, and will return into it. (Threads that are inside
 * it: state/vdso_restore.h.)
 */
#ifndef SUPERVISOR_SYSCALL_VDSO_FRAMES_H
#define SUPERVISOR_SYSCALL_VDSO_FRAMES_H

#include "ckpt/image_read.h"
#include "lib/err.h"

/* Before a program is brought back with another vdso than it had: refuse it if a signal frame
 * on a stack of its threads leads into the old one, whose code is no good here. The memory of
 * the new process, filled, is open as @mem_fd. */
int vdso_check_frames(int mem_fd, const struct image *img, struct err *e);

#endif
