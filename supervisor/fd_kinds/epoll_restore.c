/*
 * fd_kinds/epoll_restore.c - epoll(7) at a restart: an instance, and its watches when all that they are on is there.
 *
 * The kernel lets nobody set that a one-shot watch has fired: it is set for any event, and an
 * event is provided. A socket has one while it is new; for others see provoke_event().
 */
#include "supervisor/fd_kinds/epoll_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "supervisor/fd_kinds/epoll_watch.h"
#include "supervisor/fd_kinds/fd_kinds.h"

int fd_epoll_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return fd < 0 ? err_set(e, errno, "cannot create an epoll descriptor")
		      : fd_lift(r, fd, e);
}

/* A watch that has yet to fire. */
struct fired {
	uint32_t epoll; /* its description */
	bool done;
	struct watch w;
};

static int each_watch(struct fd_restore *r, uint32_t epoll,
	int (*action)(
		struct fd_restore *r, uint32_t epoll, const struct watch *w, struct err *e),
	struct err *e)
{
	const char *text = image_string(r->job, r->descriptions[epoll].args[0]);
	struct watch w;
	int more;

	while ((more = watch_next(&text, &w, e)) > 0)
		if (action(r, epoll, &w, e))
			return -1;
	return more;
}

static int collect_fired(
	struct fd_restore *r, uint32_t epoll, const struct watch *w, struct err *e)
{
	struct fired f = {.epoll = epoll, .w = *w};

	if (watch_has_fired(w))
		buf_push(&r->fired, struct fired, &f);
	return 0;
}

void fd_epoll_needs(const struct fd_restore *r, const struct image_description *x, bool *needed)
{
	const char *watches = image_string(r->job, x->args[0]);
	struct watch w;

	while (watch_next(&watches, &w, NULL) > 0)
		needed[w.description] = true;
}

int fd_epolls_begin(struct fd_restore *r, struct err *e)
{
	for (size_t i = 0; i < r->description_count; i++)
		if (r->descriptions[i].kind == IMAGE_FD_EPOLL &&
			each_watch(r, i, collect_fired, e))
			return -1;
	return 0;
}

static int fire_watch(struct fd_restore *r, struct fired *f, int fd, struct err *e)
{
	int result = watch_add(
		r, r->open[f->epoll], fd, &f->w, f->w.events | WATCH_ANY_EVENT, true, e);

	f->done |= result > 0;
	return result < 0 ? -1 : 0;
}

int fd_epolls_try(struct fd_restore *r, uint32_t description, int fd, struct err *e)
{
	for (size_t i = 0; i < buf_count(&r->fired, struct fired); i++) {
		struct fired *f = buf_at(&r->fired, struct fired, i);

		if (!f->done && f->w.description == description && fire_watch(r, f, fd, e))
			return -1;
	}
	return 0;
}

/* ---- events ---- */

int fd_epoll_provoke(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t *state)
{
	struct epoll_event event = {.events = EPOLLIN};

	*state = eventfd(1, EFD_CLOEXEC);
	return *state < 0 ? -1 : epoll_ctl(fd, EPOLL_CTL_ADD, *state, &event);
}

int fd_epoll_calm(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t state)
{
	return close(state);
}

static int provoke_event(struct fd_restore *r, struct fired *f, int fd, struct err *e)
{
	const struct image_description *x = &r->descriptions[f->w.description];
	const struct fd_kind *kind = r->kinds[f->w.description];
	int64_t state = 0;
	int failed;

	if (!kind->provoke)
		return 0;
	if (kind->provoke(r, x, fd, &state))
		return err_set(e, errno, "cannot make a one-shot watch on descriptor %d fire",
			f->w.fd);
	failed = fire_watch(r, f, fd, e);
	if (kind->calm(r, x, fd, state) && !failed)
		return err_set(e, errno,
			"cannot undo what made a one-shot watch on descriptor %d fire",
			f->w.fd);
	return failed;
}

/* A standard stream is another file than it was: that it reports an error is as near as it
 * gets. */
static int give_up(struct fd_restore *r, struct fired *f, int fd, struct err *e)
{
	if (r->kinds[f->w.description]->traits & FD_FROM_LAUNCHER)
		return watch_add(r, r->open[f->epoll], fd, &f->w, f->w.events, false, e) < 0
			       ? -1
			       : 0;
	return err_set(e, 0, "a one-shot watch on descriptor %d does not fire", f->w.fd);
}

static bool waits_for_process(const struct fd_restore *r, const struct watch *w)
{
	return r->kinds[w->description]->traits & FD_OWN_EVENTS;
}

int fd_epolls_fire(struct fd_restore *r, struct err *e)
{
	for (size_t i = 0; i < buf_count(&r->fired, struct fired); i++) {
		struct fired *f = buf_at(&r->fired, struct fired, i);
		int fd = r->open[f->w.description];

		if (f->done || waits_for_process(r, &f->w))
			continue;
		if (fire_watch(r, f, fd, e) || (!f->done && provoke_event(r, f, fd, e)))
			return -1;
	}
	/* From now on there may be others that have an event. */
	for (size_t i = 0; i < buf_count(&r->fired, struct fired); i++) {
		struct fired *f = buf_at(&r->fired, struct fired, i);

		if (!f->done && !waits_for_process(r, &f->w) &&
			give_up(r, f, r->open[f->w.description], e))
			return -1;
	}
	return 0;
}

/* ---- in each process ---- */

/* The signal is blocked here: it waits until it is taken. */
static int fire_signal(
	struct fd_restore *r, uint32_t epoll, const struct watch *w, int fd, struct err *e)
{
	uint64_t signals = r->descriptions[w->description].args[0];
	struct fired f = {.epoll = epoll, .w = *w};
	const struct timespec now = {0};
	sigset_t one, old;

	if (fire_watch(r, &f, fd, e) || f.done)
		return f.done ? 0 : -1;
	sigemptyset(&one);
	for (int signo = 1; signo < 64 && sigisemptyset(&one); signo++)
		if (signals >> (signo - 1) & 1 && signo != SIGKILL && signo != SIGSTOP)
			sigaddset(&one, signo);
	if (sigisemptyset(&one) || sigprocmask(SIG_BLOCK, &one, &old))
		return give_up(r, &f, fd, e);
	for (int signo = 1; signo < 64; signo++)
		if (sigismember(&one, signo))
			raise(signo);
	if (fire_watch(r, &f, fd, e))
		return -1;
	(void)sigtimedwait(&one, NULL, &now); /* it is there */
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	return f.done ? 0 : give_up(r, &f, fd, e);
}

/* The process's own descriptor, which a pidfd of its own may stand for, or the descriptor of all. */
static int file_of(const struct fd_restore *r, const struct watch *w)
{
	for (size_t i = 0; i < r->fd_count; i++)
		if (r->fds[i].fd == w->fd && r->fds[i].description == w->description)
			return w->fd;
	return r->open[w->description];
}

static int watch_signal(
	struct fd_restore *r, uint32_t epoll, const struct watch *w, struct err *e)
{
	return watch_has_fired(w) && waits_for_process(r, w)
		       ? fire_signal(r, epoll, w, file_of(r, w), e)
		       : 0;
}

static int watch_other(
	struct fd_restore *r, uint32_t epoll, const struct watch *w, struct err *e)
{
	if (watch_has_fired(w))
		return 0;
	return watch_add(r, r->open[epoll], file_of(r, w), w, w->events, false, e) < 0 ? -1 : 0;
}

int fd_epolls_watch(struct fd_restore *r, struct err *e)
{
	for (size_t i = 0; i < r->description_count; i++)
		if (r->descriptions[i].kind == IMAGE_FD_EPOLL && r->holder[i] == r->process &&
			(each_watch(r, i, watch_signal, e) || each_watch(r, i, watch_other, e)))
			return -1;
	return 0;
}
