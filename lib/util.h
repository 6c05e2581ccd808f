/*
 * util.h - cleanup attributes, whole reads and writes, growing buffers.
 */
#ifndef LIB_UTIL_H
#define LIB_UTIL_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/err.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* What belongs to this process is let go at the end of the scope. */
#define cleanup_free __attribute__((cleanup(util_free)))
#define cleanup_fd   __attribute__((cleanup(util_close)))
#define cleanup_file __attribute__((cleanup(util_fclose)))
#define cleanup_buf  __attribute__((cleanup(buf_free)))

static inline void util_free(void *p)
{
	free(*(void **)p);
}

static inline void util_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void util_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline int steal_fd(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

#define steal_ptr(p)                                                                           \
	({                                                                                     \
		__typeof__(p) r_ = (p);                                                        \
		(p) = NULL;                                                                    \
		r_;                                                                            \
	})

static inline uint64_t align_up(uint64_t v, uint64_t a)
{
	return (v + a - 1) & ~(a - 1);
}

static inline uint64_t align_down(uint64_t v, uint64_t a)
{
	return v & ~(a - 1);
}

/* Allocation that cannot fail: out of memory ends the tool with a message, as nothing
 * sensible is left to do; a frozen program is thawed by the kernel when its tracer ends. */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* A growing byte buffer. All zero is a valid empty one. */
struct buf {
	void *data;
	size_t len, cap;
};

void buf_add(struct buf *b, const void *data, size_t n);
/* Append @n zero bytes and return their address, valid until the next call on @b. */
void *buf_grow(struct buf *b, size_t n);
/* Make room for @n bytes more, so that adding them needs no memory. */
void buf_reserve(struct buf *b, size_t n);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_free(struct buf *b);

/* Strings one behind the other, each with its NUL, and an empty one at the end: the one after @s in @list, or the
 * first (@s NULL); NULL: there is none. An empty list may be NULL. */
static inline const char *strings_next(const char *list, const char *s)
{
	const char *next = s ? s + strlen(s) + 1 : list;

	return next && *next ? next : NULL;
}

/* Elements of type @type in a buffer used as an array. */
#define buf_count(b, type)   ((b)->len / sizeof(type))
#define buf_at(b, type, i)   (&((type *)(b)->data)[i])
#define buf_push(b, type, v) buf_add((b), (v), sizeof(type))

/* For qsort(3) and bsearch(3) of int, and pid_t. */
int compare_ints(const void *a, const void *b);

/* Close all descriptors but those in @stay (int; it is sorted; -1 counts for none). -1 with
 * errno. */
int close_all_except(struct buf *stay);

/* Read or write all of @n bytes at @offset, through short counts and EINTR. @what names the
 * file in the message. End of file before @n bytes is an error, and so is a write that takes
 * nothing (/proc/PID/mem of a process that has ended). */
int pread_all(int fd, void *data, size_t n, uint64_t offset, const char *what, struct err *e);
int pwrite_all(
	int fd, const void *data, size_t n, uint64_t offset, const char *what, struct err *e);
/* The same of @count pieces, one behind the other in the file; @pieces is changed. */
int pwritev_all(int fd, struct iovec *pieces, int count, uint64_t offset, const char *what,
	struct err *e);
int read_all(int fd, void *data, size_t n, const char *what, struct err *e);
int write_all(int fd, const void *data, size_t n, const char *what, struct err *e);

/* The whole of a file (also one in /proc whose size reads 0), with a NUL after the last byte
 * that is not counted. The caller frees *data. */
int read_file(const char *path, char **data, size_t *len, struct err *e);
int read_file_at(int dirfd, const char *path, char **data, size_t *len, struct err *e);
/* The same, at most @step bytes with each read(2). */
int read_file_in_steps(const char *path, size_t step, char **data, size_t *len, struct err *e);

/* Bring the directory that @path lies in to disk: a name is there when its directory is. @path
 * has a slash. */
int sync_directory_of(const char *path, struct err *e);

/* $TMPDIR, or /tmp. */
const char *temporary_directory(void);

/* readlink(2) into memory of the caller's. */
char *read_link(const char *path, struct err *e);

/* Nanoseconds of @clock (CLOCK_MONOTONIC and so on). */
uint64_t clock_ns(int clock);

/* For so many nanoseconds, or less when a signal comes. */
void sleep_ns(uint64_t ns);

/* flock(2), tried again until @deadline_ns of CLOCK_MONOTONIC. -1 and errno: EWOULDBLOCK when
 * somebody else still holds the lock. */
int flock_until(int fd, int how, uint64_t deadline_ns);

/* pthread_create(3) with a stack of a size that does not depend on a limit (RLIMIT_STACK). -1 and errno on
 * failure. */
int thread_start(pthread_t *thread, void *(*f)(void *arg), void *arg);

#endif
