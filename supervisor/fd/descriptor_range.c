/*
 * A number that is taken for the moment is in nobody's way for good: each process moves on what
 * is in the place of another (fd_table/descriptor_numbers.c). So all that a restart needs is room for
 * all open files at the same time, and one more.
 */
#include "supervisor/fd/descriptor_range.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/util.h"

/* No kernel has as many: RLIMIT_NOFILE refuses it. */
#define FD_MAX (1 << 30)

/* Descriptors that there may be besides: the streams, the caller's, the checkpoint's files. */
#define SPARE 256

/* The numbers that a process and its threads have. */
static void add_numbers(const struct image *process, struct buf *numbers)
{
	const struct image_thread_fd *own;
	const struct image_fd *fds;
	size_t count;

	own = image_note_array(process, IMAGE_NOTE_THREAD_FDS, struct image_thread_fd, &count);
	for (size_t i = 0; i < count; i++)
		buf_push(numbers, int, &own[i].fd);
	fds = image_note_array(process, IMAGE_NOTE_FDS, struct image_fd, &count);
	for (size_t i = 0; i < count; i++)
		buf_push(numbers, int, &fds[i].fd);
}

/* Of all processes, in order. */
static void all_numbers(const struct checkpoint *c, struct buf *numbers)
{
	for (size_t i = 0; i < c->process_count; i++)
		add_numbers(c->processes[i], numbers);
	if (numbers->len)
		qsort(numbers->data, buf_count(numbers, int), sizeof(int), compare_ints);
}

int descriptor_range_close(const struct fd_restore *r, struct err *e)
{
	/* Root alone could have raised the hard limit, and may lower it again. */
	if (setrlimit(RLIMIT_NOFILE, &r->limit))
		return err_set(e, errno, "cannot restore the limit on open files");
	return 0;
}

/* Where the limit leaves no room above all numbers: the largest gap between them. */
static int find_gap(const struct fd_restore *r, const struct buf *numbers)
{
	int from = 0, end = r->limit.rlim_max < FD_MAX ? (int)r->limit.rlim_max : FD_MAX;
	size_t count = buf_count(numbers, int);
	int base = end, most = 0;

	for (size_t i = 0; i <= count && from < end; i++) {
		int next = i < count ? *buf_at(numbers, int, i) : end;

		if (next > end)
			next = end;
		if (next - from > most) {
			base = from;
			most = next - from;
		}
		from = next + 1;
	}
	return base;
}

static uint64_t limit_needed(const struct fd_restore *r)
{
	return (uint64_t)r->base + r->description_count + 2 * r->object_count + SPARE;
}

/* Above all numbers, where the limit leaves room or only root's right to raise it is asked for.
 */
int descriptor_range_find(struct fd_restore *r, struct err *e)
{
	cleanup_buf struct buf numbers = {0};
	struct rlimit limit;
	size_t count;

	all_numbers(r->checkpoint, &numbers);
	count = buf_count(&numbers, int);
	if (count) {
		int last = *buf_at(&numbers, int, count - 1);

		r->base = last < FD_MAX ? last + 1 : FD_MAX;
	}
	if (getrlimit(RLIMIT_NOFILE, &r->limit))
		return err_set(e, errno, "cannot query the limit on open files");
	limit.rlim_cur = limit.rlim_max = limit_needed(r);
	if (limit.rlim_max <= r->limit.rlim_max)
		return 0;
	if (!setrlimit(RLIMIT_NOFILE, &limit))
		return descriptor_range_close(r, e);
	r->base = find_gap(r, &numbers);
	return 0;
}

int descriptor_range_begin(struct fd_restore *r, struct err *e)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &r->limit))
		return err_set(e, errno, "cannot query the limit on open files");
	limit.rlim_max = r->limit.rlim_max;
	if (limit.rlim_max < limit_needed(r))
		limit.rlim_max = limit_needed(r);
	limit.rlim_cur = limit.rlim_max;
	if (!setrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	/* Without the right to more. What is available may do. */
	limit.rlim_cur = limit.rlim_max = r->limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit)
		       ? err_set(e, errno,
				 "cannot raise the limit to %llu descriptors (RLIMIT_NOFILE)",
				 (unsigned long long)limit.rlim_cur)
		       : 0;
}

int descriptor_range_dup(const struct fd_restore *r, int fd, int command)
{
	int number = fcntl(fd, command, r->base);

	/* EINVAL: the number is not below the limit. */
	if (number >= 0 || (errno != EMFILE && errno != EINVAL))
		return number;
	return fcntl(fd, command, STDERR_FILENO + 1);
}

int descriptor_range_none(const struct fd_restore *r, int code, struct err *e)
{
	if (code != EMFILE && code != EINVAL)
		return err_set(e, code, "cannot duplicate a descriptor");
	return err_set(e, 0,
		"at a restart, one process holds all open files of the tree, but no more than "
		"%llu are allowed here: raise the hard limit (RLIMIT_NOFILE, ulimit -Hn)",
		(unsigned long long)r->limit.rlim_max);
}

/* ---- at a checkpoint ---- */

/* What the first process of a restart has besides: streams, pipes, directories on the way. */
#define BESIDES 32

int descriptor_range_check(uint64_t count, struct err *e)
{
	struct rlimit limit, wanted;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return err_set(e, errno, "cannot query the limit on open files");
	count += BESIDES;
	if (count <= limit.rlim_max)
		return 0;
	wanted = (struct rlimit){.rlim_cur = limit.rlim_cur, .rlim_max = count};
	if (!setrlimit(RLIMIT_NOFILE, &wanted))
		return setrlimit(RLIMIT_NOFILE, &limit)
			       ? err_set(e, errno, "cannot restore the limit on open files")
			       : 0;
	return err_set(e, 0,
		"a restart would need %llu descriptors in one process, for all open files of "
		"the tree, and no more than %llu are allowed: raise the hard limit (ulimit "
		"-Hn) before trecr-run",
		(unsigned long long)count, (unsigned long long)limit.rlim_max);
}
