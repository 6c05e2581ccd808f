/*
 * kernel_release.h - which kernel this is, where it does not say itself what it has.
 */
#ifndef LIB_KERNEL_RELEASE_H
#define LIB_KERNEL_RELEASE_H

#include <stdbool.h>

/* As uname(2) has it; "" when it cannot be read. */
const char *kernel_release(void);

/* Whether @release is @major.@minor or later. A text that says nothing counts as late. */
bool release_is_at_least(const char *release, unsigned major, unsigned minor);

/* The same of this kernel. */
bool kernel_is_at_least(unsigned major, unsigned minor);

#endif
