/*
 * requests.c - a checkpoint of its own accord, then the answer to each kind of request.
 */
#include "supervisor/run/requests.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "ckpt/store_dir.h"
#include "lib/notices.h"
#include "lib/procfs.h"
#include "supervisor/job/member_files.h"
#include "supervisor/job/checkpoint_part.h"
#include "supervisor/job/checkpoint_turns.h"
#include "supervisor/job/mpi_ranks.h"
#include "supervisor/job/reach_member.h"
#include "supervisor/control/control_protocol.h"
#include "supervisor/run/loop.h"
#include "supervisor/split/launcher_restore.h"
#include "supervisor/start/supervisor_messages.h"
#include "supervisor/start/job_control.h"

/* @client: the connection that asked for it, -1: none waits. */
static int take_requested(struct supervisor *s, const struct checkpoint_request *request,
	int client, struct err *e)
{
	struct checkpoint_taking taking;
	int r;

	if (checkpoint_begin(&taking, s, request, e))
		return -1;
	loop_attend(s, &taking, client);
	r = checkpoint_end(&taking);
	loop_signals_served(s, !r && request->part);
	if (r < 0)
		return r;
	if (s->options.verbose)
		supervisor_say(s, "checkpoint %s", s->last.path);
	return 0;
}

void requests_checkpoint(struct supervisor *s, enum job_reason reason, unsigned deadline_s)
{
	struct checkpoint_request request = {.foresee = deadline_s,
		.fork = reason == JOB_INTERVAL,
		.nobody_waits = reason == JOB_INTERVAL};
	struct err e = ERR_INIT;

	if (s->job) {
		job_checkpoint_begin(s, reason, deadline_s);
		return;
	}
	if (deadline_s)
		request.deadline_ns = clock_ns(CLOCK_MONOTONIC) + deadline_s * 1000000000ull;
	checkpoint_request_complete(&request, &s->options);
	if (take_requested(s, &request, -1, &e) < 0)
		supervisor_say(s, "cannot checkpoint: %s", e.msg);
	else
		notices_take(supervisor_say_once, s);
}

static void add_text(struct buf *answer, const char *key, const char *value)
{
	buf_printf(answer, "%s ", key);
	control_escape(answer, value);
	buf_printf(answer, "\n");
}

/* An answer must fit the socket's buffer. */
#define NOTICES_MOST (64u << 10)

struct told {
	struct buf *answer;
	size_t left_out;
};

static void add_notice(void *arg, const char *line)
{
	struct told *t = arg;

	if (t->answer->len + strlen(line) > NOTICES_MOST)
		t->left_out++;
	else
		add_text(t->answer, "notice", line);
}

static void add_notices(struct buf *answer)
{
	struct told t = {.answer = answer};

	notices_take(add_notice, &t);
	if (t.left_out)
		buf_printf(answer, "notice %zu more messages are left out\n", t.left_out);
}

static const char *word_of_failure(
	int r, const struct control_request *request, const struct err *e)
{
	if (r == CHECKPOINT_KEPT)
		return "kept";
	return request->part && e->remedy == ERR_TRY_AGAIN ? "again" : "error";
}

static void answer_checkpoint(
	struct supervisor *s, const struct control_request *request, struct buf *answer)
{
	cleanup_free char *whole = xasprintf("%s/" STORE_NAME, s->options.dir, request->part);
	struct part part = {.fd = request->fd, .whole = whole, .sequence = request->part};
	struct checkpoint_request take_it = request->checkpoint;
	struct err e = ERR_INIT;
	int r;

	if (!request->part != !s->job) {
		add_text(answer, s->job ? "job" : "error",
			s->job ? s->job->dir : "this is not a member of a job");
		return;
	}
	if (request->part)
		take_it.part = &part;
	checkpoint_request_complete(&take_it, &s->options);
	r = take_requested(s, &take_it, request->part ? -1 : request->fd, &e);
	if (r < 0) {
		add_text(answer, word_of_failure(r, request, &e), e.msg);
		return;
	}
	add_notices(answer);
	add_text(answer, "ok", s->last.path);
}

/* The connection stays open, as the turn is its holder's for so long. */
static void answer_turn(
	struct supervisor *s, const struct control_request *request, struct buf *answer)
{
	int fd = s->job && s->job->turns ? fcntl(request->fd, F_DUPFD_CLOEXEC, 3) : -1;

	if (fd < 0)
		add_text(answer, "error", "this is not rank 0 of a job");
	else
		turns_ask(s->job->turns, fd, request->signalled, request->again);
}

static void add_number(struct buf *answer, const char *key, uint64_t value)
{
	buf_printf(answer, "%s %" PRIu64 "\n", key, value);
}

/* Whether this process is an ancestor of @pid. */
static bool is_below(pid_t pid)
{
	while (pid > 0 && pid != getpid()) {
		cleanup_free char *status = procfs_status(pid, pid, NULL);

		pid = status ? (pid_t)status_number(status, "PPid", 10) : 0;
	}
	return pid == getpid();
}

static void add_each(struct buf *answer, const char *key, const char *texts, const char *end)
{
	for (; texts < end && *texts; texts += strlen(texts) + 1)
		add_text(answer, key, texts);
}

/* What a restart has left for processes that it has brought back is not there any more in those that they execute. */
static void answer_launcher(
	struct supervisor *s, const struct control_request *request, struct buf *answer)
{
	cleanup_free struct records_launcher *l = xcalloc(1, sizeof(*l));
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct err e = ERR_INIT;

	if (!s->job || getsockopt(request->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) ||
		!is_below(peer.pid)) {
		add_text(answer, "error", "this is not the supervisor of your program");
		return;
	}
	if (s->restarted && launcher_describe(l, s->mpi_library, MPI_ABI_NONE, &e)) {
		add_text(answer, "error", e.msg);
		return;
	}
	if (s->restarted) {
		add_number(answer, "mpi", l->mpi);
		add_each(answer, "library", l->names, l->names + sizeof(l->names));
		add_each(answer, "variable", l->text, l->text + l->size);
	}
	add_text(answer, "ok", "");
}

static void answer_mpi(
	struct supervisor *s, const struct control_request *request, struct buf *answer)
{
	static const char *const words[] = {[MPI_RANKS_LATER] = "later",
		[MPI_RANKS_ALL] = "ok",
		[MPI_RANKS_NOT_ALL] = "no"};
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct err e = ERR_INIT;

	if (!s->job)
		add_text(answer, "error", "this is not a member of a job");
	else if (getsockopt(request->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		add_text(answer, "error", "it is not known who asks");
	else if (request->all)
		add_text(answer, words[mpi_ranks_ask(s->job, peer.pid, reach_answers)], "");
	else if (mpi_ranks_begin(s->job, peer.pid, &e))
		add_text(answer, "error", e.msg);
	else
		add_text(answer, "ok", "");
}

/* The checkpoint that is being taken, and the requests behind it. */
static void add_under_way(const struct supervisor *s, struct buf *answer)
{
	struct under_way_report report;
	unsigned waiting;

	if (!loop_looks(s, &report, &waiting))
		return;
	add_text(answer, "phase", report.phase);
	add_number(answer, "elapsed_ns", report.elapsed_ns);
	add_number(answer, "done_bytes", report.done_bytes);
	add_number(answer, "total_bytes", report.total_bytes);
	add_number(answer, "bytes_per_second", report.rate);
	add_number(answer, "waiting", waiting);
}

/* Arguments may take up megabytes (execve(2)). */
#define COMMAND_MOST (16u << 10)

static void add_command(struct buf *answer, const char *command)
{
	size_t length = strnlen(command, COMMAND_MOST);
	cleanup_free char *cut = NULL;

	while (length && (command[length] & 0xc0) == 0x80)
		length--; /* not in the middle of a character of UTF-8 */
	cut = xasprintf("%.*s%s", (int)length, command, command[length] ? " ..." : "");
	add_text(answer, "command", cut);
}

static void answer_status(const struct supervisor *s, struct buf *answer)
{
	add_number(answer, "supervisor", getpid());
	add_number(answer, "pid", s->root);
	add_command(answer, s->command);
	add_text(answer, "state", job_control_stopped(s->root) ? "stopped" : "running");
	add_number(answer, "started_ns", s->started_realtime_ns);
	add_text(answer, "directory", s->options.dir);
	add_number(answer, "checkpoints_done", s->checkpoints_done);
	add_number(answer, "checkpoints_failed", s->checkpoints_failed);
	if (s->last.path) {
		add_text(answer, "last_path", s->last.path);
		add_number(answer, "last_time_ns", s->last.realtime_ns);
		add_number(answer, "last_pause_ns", s->last.pause_ns);
		add_number(answer, "last_stored_bytes", s->last.stored_bytes);
		add_number(answer, "last_memory_bytes", s->last.memory_bytes);
	}
	add_under_way(s, answer);
	buf_printf(answer, "\n");
}

void requests_answer(void *arg, const struct control_request *request, struct buf *answer)
{
	struct supervisor *s = arg;

	switch (request->kind) {
	case CONTROL_CHECKPOINT:
		answer_checkpoint(s, request, answer);
		break;
	case CONTROL_STATUS:
		answer_status(s, answer);
		break;
	case CONTROL_TURN:
		answer_turn(s, request, answer);
		break;
	case CONTROL_MPI:
		answer_mpi(s, request, answer);
		break;
	case CONTROL_LAUNCHER:
		answer_launcher(s, request, answer);
		break;
	case CONTROL_ARRIVED:
		add_text(answer, "error", "the job runs already");
		break;
	}
}
