/*
 * util.c - memory, buffers, descriptors, whole reads and writes, clocks, and threads.
 */
#include "lib/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>

#include "lib/limits.h"
static void out_of_memory(void)
{
	static const char text[] = "trecr: out of memory\n";

	/* Nothing to be done when stderr is gone as well. */
	(void)!write(2, text, sizeof(text) - 1);
	_exit(125);
}

void *xmalloc(size_t n)
{
	void *p = malloc(n ? n : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *xrealloc(void *old, size_t n)
{
	void *p = realloc(old, n ? n : 1);

	if (!p)
		out_of_memory();
	return p;
}

char *xstrdup(const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(xmalloc(n), s, n);
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *s;

	if (vasprintf(&s, fmt, ap) < 0)
		out_of_memory();
	return s;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}

void buf_reserve(struct buf *b, size_t n)
{
	if (b->len + n <= b->cap)
		return;
	b->cap = b->cap * 2 > b->len + n ? b->cap * 2 : b->len + n + 64;
	b->data = xrealloc(b->data, b->cap);
}

void *buf_grow(struct buf *b, size_t n)
{
	void *p;

	buf_reserve(b, n);
	p = (char *)b->data + b->len;
	if (n)
		memset(p, 0, n);
	b->len += n;
	return p;
}

void buf_add(struct buf *b, const void *data, size_t n)
{
	buf_reserve(b, n);
	if (n)
		memcpy((char *)b->data + b->len, data, n);
	b->len += n;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	cleanup_free char *s = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	buf_add(b, s, n);
}

void buf_free(struct buf *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

int close_all_except(struct buf *stay)
{
	unsigned next = 0;

	if (stay->len)
		qsort(stay->data, buf_count(stay, int), sizeof(int), compare_ints);
	for (size_t i = 0; i < buf_count(stay, int); i++) {
		int fd = *buf_at(stay, int, i);

		if (fd < 0 || (unsigned)fd < next)
			continue;
		if ((unsigned)fd > next && close_range(next, fd - 1, 0))
			return -1;
		next = fd + 1;
	}
	return close_range(next, ~0u, 0);
}

/* What read(2) has returned: how much there is, 0: it is to be called again; -1: failure. */
static ssize_t given_by_read(ssize_t r, const char *what, struct err *e)
{
	if (r < 0 && errno == EINTR)
		return 0;
	if (r < 0)
		return err_set(e, errno, "cannot read %s", what);
	return r ? r : err_set(e, 0, "cannot read %s: it ends unexpectedly", what);
}

/* The same of write(2). */
static ssize_t taken_by_write(ssize_t r, const char *what, struct err *e)
{
	if (r < 0 && errno == EINTR)
		return 0;
	if (r < 0)
		return limit_err(e, errno, SYS_pwrite64, "cannot write %s", what);
	return r ? r : err_set(e, 0, "cannot write %s: no more bytes are accepted", what);
}

int pread_all(int fd, void *data, size_t n, uint64_t offset, const char *what, struct err *e)
{
	char *p = data;

	while (n) {
		ssize_t r = given_by_read(pread(fd, p, n, offset), what, e);

		if (r < 0)
			return -1;
		p += r;
		n -= r;
		offset += r;
	}
	return 0;
}

int pwrite_all(
	int fd, const void *data, size_t n, uint64_t offset, const char *what, struct err *e)
{
	const char *p = data;

	while (n) {
		ssize_t r = taken_by_write(pwrite(fd, p, n, offset), what, e);

		if (r < 0)
			return -1;
		p += r;
		n -= r;
		offset += r;
	}
	return 0;
}

int pwritev_all(int fd, struct iovec *pieces, int count, uint64_t offset, const char *what,
	struct err *e)
{
	while (count) {
		ssize_t r = taken_by_write(pwritev(fd, pieces, count, offset), what, e);

		if (r < 0)
			return -1;
		offset += r;
		for (; count && (size_t)r >= pieces->iov_len; pieces++, count--)
			r -= pieces->iov_len;
		if (count) {
			pieces->iov_base = (char *)pieces->iov_base + r;
			pieces->iov_len -= r;
		}
	}
	return 0;
}

int read_all(int fd, void *data, size_t n, const char *what, struct err *e)
{
	char *p = data;

	while (n) {
		ssize_t r = given_by_read(read(fd, p, n), what, e);

		if (r < 0)
			return -1;
		p += r;
		n -= r;
	}
	return 0;
}

int write_all(int fd, const void *data, size_t n, const char *what, struct err *e)
{
	const char *p = data;

	while (n) {
		ssize_t r = taken_by_write(write(fd, p, n), what, e);

		if (r < 0)
			return -1;
		p += r;
		n -= r;
	}
	return 0;
}

/* Mostly a file of /proc, of which each read gives 4 KiB at most. */
#define READ_STEP 16384

/* Not into the buffer: it would have to grow before the end of the file shows. */
static int read_steps(
	int dirfd, const char *path, size_t step, char **data, size_t *len, struct err *e)
{
	cleanup_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	cleanup_buf struct buf b = {0};
	char piece[READ_STEP];
	ssize_t r;

	if (fd < 0)
		return err_set(e, errno, "cannot open %s", path);
	do {
		r = read(fd, piece, step);
		if (r > 0)
			buf_add(&b, piece, r);
	} while (r > 0 || (r < 0 && errno == EINTR));
	if (r < 0)
		return err_set(e, errno, "cannot read %s", path);
	buf_grow(&b, 1);
	*len = b.len - 1;
	*data = steal_ptr(b.data);
	return 0;
}

int read_file_at(int dirfd, const char *path, char **data, size_t *len, struct err *e)
{
	return read_steps(dirfd, path, READ_STEP, data, len, e);
}

int read_file(const char *path, char **data, size_t *len, struct err *e)
{
	return read_file_at(AT_FDCWD, path, data, len, e);
}

int sync_directory_of(const char *path, struct err *e)
{
	cleanup_free char *dir = xstrdup(path);
	cleanup_fd int fd = -1;
	int failed;

	strrchr(dir, '/')[1] = 0;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES) {
		/* We may make names in it, and not read it. */
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		failed = fd < 0 || syncfs(fd);
	} else {
		/* EINVAL: the file system has no such call for directories. */
		failed = fd < 0 || (fsync(fd) && errno != EINVAL);
	}
	return failed ? err_set(e, errno, "cannot flush %s to disk", dir) : 0;
}

int read_file_in_steps(const char *path, size_t step, char **data, size_t *len, struct err *e)
{
	BUG_ON(step > READ_STEP);
	return read_steps(AT_FDCWD, path, step, data, len, e);
}

const char *temporary_directory(void)
{
	const char *directory = getenv("TMPDIR");

	return directory && *directory == '/' ? directory : "/tmp";
}

char *read_link(const char *path, struct err *e)
{
	char target[PATH_MAX + 1];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n < 0) {
		err_set(e, errno, "cannot read the link %s", path);
		return NULL;
	}
	target[n] = 0;
	return xstrdup(target);
}

uint64_t clock_ns(int clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void sleep_ns(uint64_t ns)
{
	const struct timespec time = {ns / 1000000000ull, ns % 1000000000ull};

	(void)nanosleep(&time, NULL);
}

#define LOCK_TICK_NS 5000000

int flock_until(int fd, int how, uint64_t deadline_ns)
{
	while (flock(fd, how | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -1;
		if (clock_ns(CLOCK_MONOTONIC) > deadline_ns) {
			errno = EWOULDBLOCK;
			return -1;
		}
		sleep_ns(LOCK_TICK_NS);
	}
	return 0;
}

#define THREAD_STACK (2u << 20)

int thread_start(pthread_t *thread, void *(*f)(void *arg), void *arg)
{
	pthread_attr_t attributes;
	int r = pthread_attr_init(&attributes);

	if (!r) {
		r = pthread_attr_setstacksize(&attributes, THREAD_STACK);
		if (!r)
			r = pthread_create(thread, &attributes, f, arg);
		pthread_attr_destroy(&attributes);
	}
	errno = r;
	return r ? -1 : 0;
}
