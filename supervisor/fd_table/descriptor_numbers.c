/*
 * A description is at one number until it is in a place, and a place is filled once. What is in
 * a place and is needed elsewhere goes to any free number before, even if that is the place of
 * something else: then it is moved once more. So one free number is enough, however full the
 * table is.
 */
#include "supervisor/fd_table/descriptor_numbers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/fd/descriptor_range.h"

/* ---- what is needed ---- */

static void note_needed(const struct fd_restore *r, uint32_t description, bool *needed)
{
	const struct fd_kind *kind = r->kinds[description];

	needed[description] = true;
	if (kind->needs && r->holder[description] == r->process)
		kind->needs(r, &r->descriptions[description], needed);
}

static size_t numbers_used(const struct fd_restore *r, const int *keep)
{
	int last = -1;

	for (size_t i = 0; i < r->fd_count; i++)
		if (r->fds[i].fd > last)
			last = r->fds[i].fd;
	for (size_t i = 0; i < r->description_count; i++)
		if (r->open[i] > last)
			last = r->open[i];
	for (size_t i = 0; i < r->object_count; i++)
		if (r->made[i].fd > last)
			last = r->made[i].fd;
	for (; *keep >= 0; keep++)
		if (*keep > last)
			last = *keep;
	return last + 1;
}

static void find_needed(struct descriptor_numbers *p, int *keep)
{
	struct fd_restore *r = p->r;
	cleanup_free bool *needed = xcalloc(r->description_count, sizeof(*needed));

	p->count = numbers_used(r, keep);
	p->holds = xcalloc(p->count, sizeof(*p->holds));
	for (size_t i = 0; i < r->fd_count; i++)
		note_needed(r, r->fds[i].description, needed);
	for (size_t i = 0; i < r->description_count; i++)
		if (needed[i] && r->open[i] >= 0)
			p->holds[r->open[i]] = &r->open[i];
	for (; *keep >= 0; keep++)
		p->holds[*keep] = keep;
	for (size_t i = 0; i < r->object_count; i++)
		if (r->made[i].mapped && r->made[i].fd >= 0)
			p->holds[r->made[i].fd] = &r->made[i].fd;
}

void descriptor_numbers_begin(struct descriptor_numbers *p, struct fd_restore *r, int *keep)
{
	size_t size = r->description_count * sizeof(*p->open);

	p->r = r;
	p->open = xmalloc(size + 1);
	memcpy(p->open, r->open, size);
	for (size_t i = 0; i < r->object_count; i++)
		r->made[i].fd = r->made[i].first;
	find_needed(p, keep);
}

/* ---- filled ---- */

static void grow_places(struct descriptor_numbers *p, int number)
{
	size_t count = (size_t)number + 1;

	if (count > p->count) {
		p->holds = xrealloc(p->holds, count * sizeof(*p->holds));
		memset(p->holds + p->count, 0, (count - p->count) * sizeof(*p->holds));
		p->count = count;
	}
}

/* What @number leads to, and is needed elsewhere. */
static int clear_number(struct descriptor_numbers *p, int number, struct err *e)
{
	int *held = p->holds[number], flags, at;

	if (!held)
		return 0;
	flags = fcntl(number, F_GETFD);
	at = flags < 0 ? -1
		       : descriptor_range_dup(
				 p->r, number, flags & FD_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD);
	if (at < 0)
		return descriptor_range_none(p->r, errno, e);
	grow_places(p, at);
	*held = at;
	p->holds[at] = held;
	p->holds[number] = NULL;
	return 0;
}

static int fill_place(struct descriptor_numbers *p, const struct image_fd *f, struct err *e)
{
	int *open = &p->r->open[f->description], from = *open;

	if (from == f->fd) {
		p->holds[f->fd] = NULL;
		return fcntl(f->fd, F_SETFD, 0)
			       ? err_set(e, errno, "cannot create descriptor %d", f->fd)
			       : 0;
	}
	if (clear_number(p, f->fd, e))
		return -1;
	if (dup2(from, f->fd) < 0)
		return err_set(e, errno, "cannot create descriptor %d", f->fd);
	/* From here on it is found in this place. */
	if (p->holds[from] == open) {
		p->holds[from] = NULL;
		*open = f->fd;
		close(from);
	}
	return 0;
}

int descriptor_numbers_fill(struct descriptor_numbers *p, struct err *e)
{
	for (size_t i = 0; i < p->r->fd_count; i++)
		if (fill_place(p, &p->r->fds[i], e))
			return -1;
	return 0;
}

/* ---- the rest ---- */

int descriptor_numbers_close_rest(
	const struct descriptor_numbers *p, const int *keep, struct err *e)
{
	const struct fd_restore *r = p->r;
	cleanup_buf struct buf stay = {0};

	for (size_t i = 0; i < r->fd_count; i++)
		buf_push(&stay, int, &r->fds[i].fd);
	for (; *keep >= 0; keep++)
		buf_push(&stay, int, keep);
	for (size_t i = 0; i < r->object_count; i++)
		if (r->made[i].mapped && r->made[i].fd >= 0)
			buf_push(&stay, int, &r->made[i].fd);
	return close_all_except(&stay)
		       ? err_set(e, errno, "cannot close the remaining descriptors")
		       : 0;
}

void descriptor_numbers_free(struct descriptor_numbers *p)
{
	if (p->open)
		memcpy(p->r->open, p->open, p->r->description_count * sizeof(*p->open));
	free(p->open);
	free(p->holds);
}
