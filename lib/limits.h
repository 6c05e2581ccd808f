/*
 * limits.h - the resource limits and sysctls that stand behind an error, in words.
 */
#ifndef LIB_LIMITS_H
#define LIB_LIMITS_H

#include <sys/resource.h>

#include "lib/err.h"

/* "RLIMIT_NOFILE" and its like, all that Linux has. */
const char *limit_name(int resource);

/* " (see RLIMIT_NPROC ...)": the limits that make system call @nr fail with @code, or "". */
const char *limit_hint(long nr, int code);

/* err_set() for a failure of system call @nr, with that behind it. */
int limit_err(struct err *e, int code, long nr, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Let this process have as many descriptors as it can. @was gets its limits, to be put back. */
void limit_files_raise(struct rlimit *was);
void limit_files_put_back(const struct rlimit *was);

#endif
