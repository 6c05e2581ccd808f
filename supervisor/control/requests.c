#include "supervisor/control/requests.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/control/common.h"
#include "supervisor/job_control.h"

static int take(struct supervisor *s, const struct checkpoint_request *request, struct err *e)
{
	if (checkpoint_take(s, request, e) < 0)
		return -1;
	if (s->options.verbose)
		fprintf(stderr, "%s: checkpoint %s\n", s->tool, s->last.path);
	return 0;
}

void requests_checkpoint(struct supervisor *s)
{
	struct checkpoint_request request = {.tcp = s->options.tcp};
	struct err e = ERR_INIT;

	if (take(s, &request, &e) < 0)
		fprintf(stderr, "%s: cannot checkpoint: %s\n", s->tool, e.msg);
}

static void answer_checkpoint(
	struct supervisor *s, const struct control_request *request, struct buf *answer)
{
	struct checkpoint_request take_it = {.stop = request->stop,
		.deadline_ns = request->deadline_ns,
		.tcp = request->has_tcp ? request->tcp : s->options.tcp};
	struct err e = ERR_INIT;

	if (take(s, &take_it, &e) < 0) {
		buf_printf(answer, "error ");
		control_escape(answer, e.msg);
	} else {
		buf_printf(answer, "ok ");
		control_escape(answer, s->last.path);
	}
	buf_printf(answer, "\n");
}

static void add_text(struct buf *answer, const char *key, const char *value)
{
	buf_printf(answer, "%s ", key);
	control_escape(answer, value);
	buf_printf(answer, "\n");
}

static void add_number(struct buf *answer, const char *key, uint64_t value)
{
	buf_printf(answer, "%s %" PRIu64 "\n", key, value);
}

static void answer_status(const struct supervisor *s, struct buf *answer)
{
	add_number(answer, "supervisor", getpid());
	add_number(answer, "pid", s->root);
	add_text(answer, "command", s->command);
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
	}
}
