/*
 * loop.c - one function for each kind of event, the poll(2) of the loop, and what of it goes
 * on while a checkpoint is taken.
 */
#include "supervisor/run/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "lib/procfs.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/job/join_job.h"
#include "supervisor/job/member_port.h"
#include "supervisor/job/member_files.h"
#include "supervisor/job/checkpoint_turns.h"
#include "supervisor/control/control_socket.h"
#include "supervisor/memory/lazy.h"
#include "supervisor/run/kill_program.h"
#include "supervisor/run/requests.h"
#include "supervisor/split/stub_libraries.h"
#include "supervisor/start/supervisor_messages.h"
#include "supervisor/start/job_control.h"
#include "supervisor/start/namespace_init.h"
#include "supervisor/start/signal_forwarding.h"
#include "supervisor/start/terminal.h"

struct loop {
	struct control *control;
	int signal_fd;
	int timer_fd; /* -1: no periodic checkpoints */
	int root_fd; /* pidfd of the root process, -1: it has been reaped by its init already, */
	bool no_pidfd;    /* or there are none */
	int stopped;      /* signal that the root process is stopped by, 0: it runs */
	bool continued;   /* by a SIGCONT that came while it was stopped */
	bool asked;       /* for a checkpoint, by a signal; */
	bool asked_early; /* before the program was frozen for what is being taken */
	struct buf held;  /* struct signalfd_siginfo: signals for when the program runs again */
	bool deaf_to_children; /* SIGCHLD is for the thread that traces the program */
	struct checkpoint_taking *taking; /* the checkpoint that is being taken; NULL: none */
	bool ended;
	int status; /* of the root process as of waitpid(2), once it has ended */
};

/* What is polled for, in this order; the descriptors of the control socket follow, then the
 * members that wait for a turn. */
enum { POLL_SIGNAL, POLL_TIMER, POLL_INIT, POLL_CONTROL };
#define POLL_MAX (POLL_CONTROL + CONTROL_POLL_MAX + TURNS_MAX)

/* A standard stream that was closed must not become one of our descriptors, which messages
 * would go to. The program finds it closed again. */
static int occupy_standard_streams(struct err *e)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return err_set(e, errno, "cannot open /dev/null");
	} while (fd <= 2);
	close(fd);
	return 0;
}

/* Mostly there is none, and /proc need not be asked. */
static bool has_children(void)
{
	siginfo_t info;

	return !waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | WNOHANG | __WALL) ||
	       errno != ECHILD;
}

/* The program that executed us may have left us children: "daemon & exec trecr-run ...". */
static int remember_former_children(struct supervisor *s, struct err *e)
{
	cleanup_free pid_t *pids = NULL;
	struct proc_stat st;
	size_t count;

	if (!has_children())
		return 0;
	if (procfs_children(getpid(), &pids, &count, e))
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct proc_identity child = {.pid = pids[i]};

		if (procfs_stat(pids[i], pids[i], &st, e))
			return -1;
		child.start_time = st.field[STAT_START_TIME];
		buf_add(&s->former_children, &child, sizeof(child));
	}
	return 0;
}

int loop_prepare(struct supervisor *s, struct err *e)
{
	struct loop *l = xcalloc(1, sizeof(*l));

	s->loop = l;
	l->timer_fd = l->root_fd = -1;
	if (occupy_standard_streams(e) < 0)
		return -1;
	l->signal_fd = signals_take(e);
	terminal_begin(s);
	if (l->signal_fd < 0 || remember_former_children(s, e) < 0)
		return -1;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_set(
			e, errno, "cannot become the subreaper of the program's processes");
	l->control = control_open(e);
	if (!l->control)
		return -1;
	return job_name_supervisor(s->job ? control_name(l->control) : NULL, e);
}

void loop_end(struct supervisor *s)
{
	if (!s->loop)
		return;
	terminal_end(s, s->loop->ended && WIFSIGNALED(s->loop->status));
	control_close(s->loop->control);
	s->loop->control = NULL;
	store_close(s->store); /* signs off in the directory of checkpoints */
	s->store = NULL;
	if (!s->job)
		return;
	turns_close(s->job->turns);
	member_port_finish(s->job->port);
	job_leave(s->job);
}

/* ---- the root process and its descendants ---- */

static void root_ended(struct supervisor *s, int status)
{
	struct err e = ERR_INIT;

	if (s->lazy && lazy_failed(s->lazy, &e))
		supervisor_say(s, "%s", e.msg);
	s->loop->ended = true;
	s->loop->status = status;
}

/* A report can be older than the state that it reports: the present state counts. */
static void root_stopped(struct supervisor *s, int signal)
{
	s->loop->stopped = job_control_stopped(s->root) ? signal : 0;
}

static int status_of(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return W_EXITCODE(info->si_status, 0);
	return W_EXITCODE(0, info->si_status);
}

/* The process that fills memory has ended. Without all of its memory the program is not to run, and
 * none of its processes is to be left. */
static void lazy_ended(struct supervisor *s, int status)
{
	struct lazy *l = s->lazy;
	struct err e = ERR_INIT;

	if (!lazy_is_whole(l, status, &e)) {
		if (*e.msg)
			supervisor_say(s, "%s", e.msg);
		kill_program(s);
	}
	lazy_end(l);
	__atomic_store_n(&s->lazy, NULL, __ATOMIC_SEQ_CST);
}

/* Reap all children that have ended: the root process, its init, and orphans of the tree. */
static void reap_children(struct supervisor *s)
{
	siginfo_t info;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) < 0 || !info.si_pid)
			break;
		if (info.si_pid == s->root && !s->init)
			root_ended(s, status_of(&info));
		if (s->lazy && info.si_pid == lazy_pid(s->lazy))
			lazy_ended(s, status_of(&info));
	}
	if (s->init || s->loop->ended)
		return;
	/* It may end between the two calls: without WEXITED, a zombie counts as no child. */
	info.si_pid = 0;
	if (waitid(P_PID, s->root, &info, WEXITED | WSTOPPED | WNOHANG) < 0)
		root_ended(s, W_EXITCODE(0, SIGKILL)); /* a checkpoint killed and reaped it */
	else if (info.si_pid && info.si_code == CLD_STOPPED)
		root_stopped(s, info.si_status);
	else if (info.si_pid && info.si_code != CLD_TRAPPED)
		root_ended(s, status_of(&info));
}

static void hear_init(struct supervisor *s)
{
	struct namespace_report report;

	/* Once the root process has ended its init ends, too, which says nothing of the root process. */
	while (!s->loop->ended) {
		ssize_t n = recv(s->init_fd, &report, sizeof(report), MSG_DONTWAIT);

		if (n < 0)
			return; /* all read */
		if (n != sizeof(report)) {
			/* An init that dies takes the program with it: as the first process of its
			 * namespace, or else that one ends the program. */
			root_ended(s, W_EXITCODE(0, SIGKILL));
			return;
		}
		if (report.kind == NAMESPACE_STOPPED)
			root_stopped(s, report.value);
		if (report.kind == NAMESPACE_ENDED) {
			root_ended(s, report.value);
			return;
		}
	}
}

/* ---- signals ---- */

/* We have been continued, or somebody wanted to make sure that we run. Where the program is
 * in our process group it has mostly been continued by the same call; and it may have been
 * stopped again since, which we have heard of then. */
static void continue_program(struct supervisor *s)
{
	s->loop->continued = false;
	/* A signal to the group may have come to us first, and an init takes its time. */
	for (int i = 0; i < (s->init ? 10 : 1); i++) {
		if (s->loop->ended || s->loop->stopped || !job_control_stopped(s->root))
			return;
		sleep_ns(2000000);
		hear_init(s);
		reap_children(s);
	}
	if (!s->loop->ended && !s->loop->stopped && job_control_stopped(s->root))
		(void)pidfd_send_signal(s->loop->root_fd, SIGCONT, NULL, 0); /* ended: fine */
}

static void handle_signal(struct supervisor *s, const struct signalfd_siginfo *info)
{
	struct err e = ERR_INIT;

	if (info->ssi_signo == SIGCHLD)
		return; /* reap_children() is called after all signals */
	if ((int)info->ssi_signo == s->options.ckpt_signal) {
		s->loop->asked = true;
		return;
	}
	if (job_control_is_wakeup(info))
		return;
	/* A SIGCONT that finds us running is like any other signal: the program may catch it. */
	if (info->ssi_signo == SIGCONT && (s->loop->stopped || s->loop->continued)) {
		s->loop->stopped = 0;
		s->loop->continued = true;
		return;
	}
	if (signals_for_us_alone(info) &&
		(s->loop->root_fd >= 0 || (s->loop->no_pidfd && !s->loop->ended)) &&
		signals_forward(s->loop->root_fd, s->root, info, &e) < 0)
		supervisor_say(s, "%s", e.msg);
}

static void handle_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->loop->signal_fd, &info, sizeof(info)) == sizeof(info))
		handle_signal(s, &info);
}

/* ---- the clock ---- */

static int start_timer(struct supervisor *s, struct err *e)
{
	struct itimerspec every = {
		.it_interval.tv_sec = s->options.interval_s,
		.it_value.tv_sec = s->options.interval_s,
	};

	if (!s->options.interval_s)
		return 0;
	s->loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->loop->timer_fd < 0 || timerfd_settime(s->loop->timer_fd, 0, &every, NULL) < 0)
		return err_set(e, errno, "cannot start the timer for periodic checkpoints");
	return 0;
}

static void handle_timer(struct supervisor *s)
{
	uint64_t expirations;

	if (read(s->loop->timer_fd, &expirations, sizeof(expirations)) < 0)
		return;
	requests_checkpoint(s, JOB_INTERVAL, 0);
	/* Checkpoints that came due meanwhile are left out. */
	(void)!read(s->loop->timer_fd, &expirations, sizeof(expirations));
}

/* ---- the loop ---- */

static struct turns *turns_of(const struct supervisor *s)
{
	return s->job ? s->job->turns : NULL;
}

/* *turns of them are behind the control socket's. */
static size_t fill_pollfds(const struct supervisor *s, struct pollfd *fds, size_t *turns)
{
	struct loop *l = s->loop;
	size_t count;

	fds[POLL_SIGNAL] = (struct pollfd){.fd = l->signal_fd, .events = POLLIN};
	fds[POLL_TIMER] = (struct pollfd){.fd = l->timer_fd, .events = POLLIN};
	fds[POLL_INIT] = (struct pollfd){.fd = s->init_fd, .events = POLLIN};
	count = POLL_CONTROL + control_poll(l->control, fds + POLL_CONTROL);
	*turns = turns_poll(turns_of(s), fds + count);
	return count;
}

/* What has happened to the program, and what is for it. */
static void attend_program(struct supervisor *s)
{
	if (s->init_fd >= 0)
		hear_init(s);
	reap_children(s);
	if (s->loop->continued)
		continue_program(s);
}

/* Clients that asked while a checkpoint was taken. */
static void serve_waiting(struct supervisor *s)
{
	while (!s->loop->ended && control_serve_waiting(s->loop->control, requests_answer, s))
		;
}

static void dispatch_events(
	struct supervisor *s, struct pollfd *fds, size_t count, size_t turns)
{
	uint64_t rounds = control_rounds(s->loop->control);

	if (fds[POLL_SIGNAL].revents)
		handle_signals(s);
	attend_program(s);
	if (s->loop->ended)
		return;
	if (fds[POLL_TIMER].revents)
		handle_timer(s);
	turns_serve(turns_of(s), fds + count, turns);
	/* A checkpoint at an interval or on a signal has served clients: what poll(2) found of them is out of
	 * date. */
	if (control_rounds(s->loop->control) == rounds)
		control_serve(s->loop->control, fds + POLL_CONTROL, count - POLL_CONTROL,
			requests_answer, s);
	serve_waiting(s);
}

/* ---- while a checkpoint is taken ---- */

/* Signals for the program wait in l->held, in their order. */
static void hold_signals(struct supervisor *s, struct checkpoint_taking *t)
{
	struct signalfd_siginfo info;

	while (read(s->loop->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if ((int)info.ssi_signo == s->options.ckpt_signal) {
			*(t->under_way.frozen ? &s->loop->asked : &s->loop->asked_early) = true;
			continue;
		}
		if (info.ssi_signo == SIGINT && t->request->stop &&
			under_way_cancel(&t->under_way, "by SIGINT"))
			continue; /* it has done its work; a terminal's reaches the program */
		buf_push(&s->loop->held, struct signalfd_siginfo, &info);
	}
}

static void handle_held(struct supervisor *s)
{
	struct buf *held = &s->loop->held;

	for (size_t i = 0; i < buf_count(held, struct signalfd_siginfo); i++)
		handle_signal(s, buf_at(held, struct signalfd_siginfo, i));
	held->len = 0;
}

enum { ATTEND_WAKE, ATTEND_SIGNAL, ATTEND_INIT, ATTEND_CONTROL };

/* Each stop of a process that is traced raises SIGCHLD. They are for the thread that traces it: this one would only be in
 * its way, dozens of times for each process. When the program is let go, children are looked for in any case. */
static void hear_children(struct supervisor *s, bool hear)
{
	if (s->loop->deaf_to_children == !hear)
		return;
	signals_hear_children(s->loop->signal_fd, hear);
	s->loop->deaf_to_children = !hear;
}

static void attend_once(struct supervisor *s, struct checkpoint_taking *t, int client)
{
	bool attached = under_way_attached(&t->under_way);
	struct pollfd fds[ATTEND_CONTROL + CONTROL_POLL_MAX];
	size_t count = ATTEND_CONTROL;
	uint64_t events;

	fds[ATTEND_WAKE] = (struct pollfd){.fd = t->under_way.wake_fd, .events = POLLIN};
	fds[ATTEND_SIGNAL] = (struct pollfd){.fd = s->loop->signal_fd, .events = POLLIN};
	/* What its init says is heard when it can be acted upon. */
	fds[ATTEND_INIT] = (struct pollfd){.fd = attached ? -1 : s->init_fd, .events = POLLIN};
	hear_children(s, !attached);
	count += control_poll(s->loop->control, fds + ATTEND_CONTROL);
	if (poll(fds, count, -1) <= 0)
		return;
	/* Read in any case: what it tells is looked at below. */
	(void)!read(t->under_way.wake_fd, &events, sizeof(events));
	hold_signals(s, t);
	if (under_way_take_children(&t->under_way)) {
		handle_held(s);
		attend_program(s);
		under_way_leave_children(&t->under_way);
	}
	control_serve(s->loop->control, fds + ATTEND_CONTROL, count - ATTEND_CONTROL,
		requests_answer, s);
	if (client >= 0 && control_has_left(s->loop->control, client))
		(void)under_way_cancel(&t->under_way, "trecr-ckpt has ended");
}

void loop_attend(struct supervisor *s, struct checkpoint_taking *taking, int client)
{
	bool held = control_hold_checkpoints(s->loop->control, true);

	s->loop->taking = taking;
	s->loop->asked_early = s->loop->asked;
	s->loop->asked = false;
	while (!taking->under_way.done)
		attend_once(s, taking, client);
	hear_children(s, true);
	control_hold_checkpoints(s->loop->control, held);
	s->loop->taking = NULL;
	handle_held(s);
	attend_program(s);
}

void loop_signals_served(struct supervisor *s, bool served)
{
	struct loop *l = s->loop;

	if (served)
		s->job->signal_served = l->asked_early;
	else
		l->asked |= l->asked_early;
	l->asked_early = false;
}

bool loop_looks(const struct supervisor *s, struct under_way_report *report, unsigned *waiting)
{
	if (!s->loop->taking)
		return false;
	under_way_look(&s->loop->taking->under_way, report);
	*waiting = control_waiting(s->loop->control);
	return true;
}

static void put_off(void *why, const struct control_request *request, struct buf *answer)
{
	buf_printf(answer, "error %s\n", (const char *)why);
}

void loop_put_off(struct supervisor *s, int ms, const char *why)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + ms * 1000000ull, now;
	struct pollfd fds[CONTROL_POLL_MAX];

	while ((now = clock_ns(CLOCK_MONOTONIC)) < deadline) {
		size_t count = control_poll(s->loop->control, fds);

		if (poll(fds, count, (deadline - now) / 1000000 + 1) > 0)
			control_serve(s->loop->control, fds, count, put_off, (void *)why);
	}
}

void loop_serve(struct supervisor *s, int ms, control_handler *handler, void *arg)
{
	struct pollfd fds[CONTROL_POLL_MAX];
	size_t count = control_poll(s->loop->control, fds);

	if (s->job->port)
		member_port_serve(s->job->port, control_name(s->loop->control), fds, count, ms);
	else if (poll(fds, count, ms) <= 0)
		return;
	control_serve(s->loop->control, fds, count, handler, arg);
}

/* Other machines cannot wake us up. */
static bool stops_with_program(const struct supervisor *s)
{
	return !s->job || !s->job->port;
}

static int wait_ms(const struct supervisor *s)
{
	int terminal = terminal_wait_ms(s), turn = turns_wait_ms(turns_of(s));

	return terminal < 0 || (turn >= 0 && turn < terminal) ? turn : terminal;
}

/* One round: wait for something and deal with it. When the program is stopped and there is
 * nothing to be done, stop with it. */
static void run_once(struct supervisor *s)
{
	struct loop *l = s->loop;
	struct pollfd fds[POLL_MAX];
	size_t count, turns;
	bool stops;
	int n;

	if (l->asked) {
		l->asked = false;
		requests_checkpoint(s, JOB_SIGNAL, s->options.deadline_s);
		serve_waiting(s);
		return;
	}
	count = fill_pollfds(s, fds, &turns);
	stops = l->stopped && stops_with_program(s);
	n = poll(fds, count + turns, stops ? 0 : wait_ms(s));
	if (n > 0) {
		dispatch_events(s, fds, count, turns);
		return;
	}
	turns_serve(turns_of(s), NULL, 0);
	if (!l->stopped)
		terminal_turn(s);
	if (!l->stopped || !job_control_still_stopped(s->root)) {
		l->stopped = 0;
		return;
	}
	if (!stops)
		return;
	/* What is heard of from here on has happened since. */
	reap_children(s);
	if (!l->stopped || l->ended)
		return;
	terminal_stop(s);
	job_control_stop(l->stopped, s->root, fds + POLL_INIT, count - POLL_INIT);
	terminal_continue(s);
}

/* Readers and writers of the program's standard input and output must see their ends when
 * the program closes them. Standard error stays for messages. */
static void let_go_of_streams(void)
{
	cleanup_fd int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0 || dup3(fd, 0, O_CLOEXEC) < 0 || dup3(fd, 1, O_CLOEXEC) < 0)
		return; /* nobody is harmed at once: the streams end with us */
}

int loop_run(struct supervisor *s)
{
	struct loop *l = s->loop;
	struct err e = ERR_INIT;

	fd_remember_streams();
	let_go_of_streams();
	l->root_fd = pidfd_open(s->root, 0);
	l->no_pidfd = l->root_fd < 0 && errno != ESRCH;
	/* Beside the program's own start. */
	s->release = stubs_find_release();
	control_tidy(l->control);
	if (start_timer(s, &e) < 0)
		supervisor_say(s, "%s", e.msg);
	if (s->job && s->job->port &&
		member_port_start(s->job->port, control_name(l->control), &e) < 0)
		supervisor_say(s, "%s", e.msg);
	reap_children(s);
	while (!l->ended)
		run_once(s);
	loop_end(s);
	return WIFSIGNALED(l->status) ? 128 + WTERMSIG(l->status) : WEXITSTATUS(l->status);
}
