/*
 * trecr-ckpt - ask a supervisor for a checkpoint, or how things are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/json.h"
#include "lib/opts.h"
#include "lib/progress.h"
#include "lib/util.h"
#include "supervisor/control/checkpoint_request.h"
#include "supervisor/control/control_client.h"
#include "supervisor/control/control_protocol.h"
#include "supervisor/job/coordinate.h"
#include "supervisor/start/supervisor_options.h"

#define TOOL "trecr-ckpt"

/* How much longer than the supervisor we wait: it gives up by itself, and can say why. */
#define GRACE_NS 2000000000ull

/* Exit status when the checkpoint is complete, but the program resumes as it could not be
 * restarted. */
#define NOT_ENDED 2

static struct settings {
	struct checkpoint_request request;
	bool status, watch, json, verbose;
	unsigned timeout_s, deadline_s, drain_s;
} settings;

#define FIELD(name)   offsetof(struct settings, name)
#define REQUEST(name) FIELD(request.name)

static int opt_request_tcp(void *field, const char *value, struct err *e)
{
	struct checkpoint_request *request = field;

	request->has_tcp = true;
	return opt_tcp(&request->tcp, value, e);
}

static int opt_request_compress(void *field, const char *value, struct err *e)
{
	struct checkpoint_request *request = field;

	request->has_compress = true;
	return opt_compress(&request->compress, value, e);
}

static const struct opt rows[] = {
	{'s', "stop", NULL, "end the program when the checkpoint is complete", opt_flag,
		REQUEST(stop)},
	{0, "no-try", NULL, "with --stop: end it without having tried a restart", opt_flag,
		REQUEST(no_try)},
	{0, "try", NULL,
		"try a restart as --stop does; the program runs on,\n"
		"and the exit status is 2 if it would fail",
		opt_flag, REQUEST(try_restart)},
	{0, "verify", NULL,
		"with --stop: end it only when all data has been read\nback from the disk and "
		"compared",
		opt_flag, REQUEST(verify)},
	{'t', "timeout", "SEC", "give up after SEC seconds", opt_positive, FIELD(timeout_s)},
	{0, "deadline", "SEC",
		"give up after SEC seconds, and as soon as it is\nclear that it will take "
		"longer",
		opt_positive, FIELD(deadline_s)},
	{0, "drain-timeout", "SEC",
		"how long GPUs may take to finish their work, and MPI\nranks to come to rest",
		opt_positive, FIELD(drain_s)},
	{0, "tcp", "MODE",
		"TCP connections to the outside: refuse the\n"
		"checkpoint, reset them at a restart, or keep them",
		opt_request_tcp, FIELD(request)},
	{0, "compress", "METHOD", "compress memory: lz4, zstd[:LEVEL], or none",
		opt_request_compress, FIELD(request)},
	{0, "fork", NULL, HELP_FORK, opt_flag, REQUEST(fork)},
	{'j', "jobs", "N", "write memory with N threads", opt_positive, REQUEST(threads)},
	{0, "rate", "BYTES", HELP_RATE, opt_bytes, REQUEST(rate)},
	{0, "status", NULL, "take no checkpoint, print the status", opt_flag, FIELD(status)},
	{0, "watch", NULL,
		"with --status: continue with a line for each change,\n"
		"until the program ends",
		opt_flag, FIELD(watch)},
	{0, "json", NULL, "print the status as JSON", opt_flag, FIELD(json)},
	{'v', "verbose", NULL, HELP_VERBOSE, opt_flag, FIELD(verbose)},
	{0},
};

static int ckpt_failed(const struct err *e)
{
	fprintf(stderr, TOOL ": cannot %s: %s\n",
		settings.status ? "get the status" : "checkpoint", e->msg);
	return 1;
}

/* Output counts only when it has been written. */
static int status_of_output(void)
{
	if (fflush(stdout) == 0)
		return 0;
	perror(TOOL ": cannot write to standard output");
	return 1;
}

static uint64_t asked_ns;

/* ---- status ---- */

struct status_line {
	char *key, *value;
};

/* Split "KEY VALUE" lines in @text, which is changed. */
static size_t split_lines(char *text, struct status_line *lines, size_t room)
{
	size_t n = 0;

	while (n < room && *text && *text != '\n') {
		char *end = strchrnul(text, '\n'), *space;

		if (*end)
			*end++ = 0;
		space = strchrnul(text, ' ');
		if (*space)
			*space++ = 0;
		control_unescape(space);
		lines[n++] = (struct status_line){text, space};
		text = end;
	}
	return n;
}

static const char *value_of(const struct status_line *lines, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(lines[i].key, key))
			return lines[i].value;
	}
	return "";
}

static uint64_t number_of(const struct status_line *lines, size_t n, const char *key)
{
	return strtoull(value_of(lines, n, key), NULL, 10);
}

static void format_time(uint64_t realtime_ns, char *out, size_t size)
{
	time_t seconds = realtime_ns / 1000000000;
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm);
}

static void format_bytes(uint64_t bytes, char *out, size_t size)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	double v = bytes;
	size_t u = 0;

	for (; v >= 1024 && u < ARRAY_SIZE(units) - 1; u++)
		v /= 1024;
	snprintf(out, size, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

#define STATUS_LINES 32

/* "writing memory, 64.0 MiB of 2.0 GiB, 1.1 GiB/s, 0.3 s" */
static void add_under_way(const struct status_line *l, size_t n, struct buf *out)
{
	uint64_t total = number_of(l, n, "total_bytes"),
		 rate = number_of(l, n, "bytes_per_second");
	uint64_t waiting = number_of(l, n, "waiting");
	char done_text[32], total_text[32], rate_text[32];

	format_bytes(number_of(l, n, "done_bytes"), done_text, sizeof(done_text));
	format_bytes(total, total_text, sizeof(total_text));
	format_bytes(rate, rate_text, sizeof(rate_text));
	buf_printf(out, "%s", value_of(l, n, "phase"));
	if (total)
		buf_printf(out, ", %s of %s", done_text, total_text);
	if (rate)
		buf_printf(out, ", %s/s", rate_text);
	buf_printf(out, ", %.1f s", number_of(l, n, "elapsed_ns") / 1e9);
	if (waiting)
		buf_printf(out, "; %" PRIu64 " more requested", waiting);
}

static void print_text(const struct status_line *l, size_t n)
{
	char when[32], stored[32], memory[32];

	format_time(number_of(l, n, "started_ns"), when, sizeof(when));
	printf("command      %s\n", value_of(l, n, "command"));
	printf("process      %s, %s since %s\n", value_of(l, n, "pid"), value_of(l, n, "state"),
		when);
	printf("supervisor   %s\n", value_of(l, n, "supervisor"));
	printf("directory    %s\n", value_of(l, n, "directory"));
	printf("checkpoints  %s done, %s failed\n", value_of(l, n, "checkpoints_done"),
		value_of(l, n, "checkpoints_failed"));
	if (*value_of(l, n, "phase")) {
		cleanup_buf struct buf now = {0};

		add_under_way(l, n, &now);
		printf("now          %.*s\n", (int)now.len, (char *)now.data);
	}
	if (!*value_of(l, n, "last_path"))
		return;
	format_time(number_of(l, n, "last_time_ns"), when, sizeof(when));
	format_bytes(number_of(l, n, "last_stored_bytes"), stored, sizeof(stored));
	format_bytes(number_of(l, n, "last_memory_bytes"), memory, sizeof(memory));
	printf("last         %s\n", value_of(l, n, "last_path"));
	printf("             at %s, %s stored of %s, pause %.1f ms\n", when, stored, memory,
		number_of(l, n, "last_pause_ns") / 1e6);
}

static void json_under_way(const struct status_line *l, size_t n, struct json *j)
{
	if (!*value_of(l, n, "phase")) {
		json_null(j, "now");
		return;
	}
	json_object(j, "now");
	json_text(j, "phase", value_of(l, n, "phase"));
	json_real(j, "elapsed", number_of(l, n, "elapsed_ns") / 1000000 / 1e3);
	json_number(j, "done_bytes", number_of(l, n, "done_bytes"));
	json_number(j, "total_bytes", number_of(l, n, "total_bytes"));
	json_number(j, "bytes_per_second", number_of(l, n, "bytes_per_second"));
	json_number(j, "waiting", number_of(l, n, "waiting"));
	json_end(j);
}

static void print_json(const struct status_line *l, size_t n)
{
	cleanup_buf struct buf out = {0};
	struct json j = {.out = &out};

	json_object(&j, NULL);
	json_number(&j, "supervisor", number_of(l, n, "supervisor"));
	json_number(&j, "pid", number_of(l, n, "pid"));
	json_text(&j, "command", value_of(l, n, "command"));
	json_text(&j, "state", value_of(l, n, "state"));
	json_real(&j, "started", number_of(l, n, "started_ns") / 1000000 / 1e3);
	json_text(&j, "directory", value_of(l, n, "directory"));
	json_number(&j, "checkpoints_done", number_of(l, n, "checkpoints_done"));
	json_number(&j, "checkpoints_failed", number_of(l, n, "checkpoints_failed"));
	json_under_way(l, n, &j);
	if (!*value_of(l, n, "last_path")) {
		json_null(&j, "last");
	} else {
		json_object(&j, "last");
		json_text(&j, "path", value_of(l, n, "last_path"));
		json_real(&j, "time", number_of(l, n, "last_time_ns") / 1000000 / 1e3);
		json_real(&j, "pause_ms", number_of(l, n, "last_pause_ns") / 1e6);
		json_number(&j, "stored_bytes", number_of(l, n, "last_stored_bytes"));
		json_number(&j, "memory_bytes", number_of(l, n, "last_memory_bytes"));
		json_end(&j);
	}
	json_end(&j);
	fwrite(out.data, 1, out.len, stdout);
}

static int print_status(char *text)
{
	struct status_line lines[STATUS_LINES];
	size_t n = split_lines(text, lines, STATUS_LINES);

	if (settings.json)
		print_json(lines, n);
	else
		print_text(lines, n);
	return status_of_output();
}

/* ---- checkpoint ---- */

/* Gives the line at *@text without its newline, and moves on to the next. */
static char *take_line(char **text)
{
	char *line = *text, *end = strchrnul(line, '\n');

	*text = *end ? end + 1 : end;
	*end = 0;
	control_unescape(line);
	return line;
}

static int print_checkpoint(char *text)
{
	struct err e = ERR_INIT;
	char *line;

	while (line = take_line(&text), !strncmp(line, "notice ", 7))
		fprintf(stderr, TOOL ": %s\n", line + 7);
	if (!strncmp(line, "kept ", 5)) {
		fprintf(stderr, TOOL ": %s\n", line + 5);
		return NOT_ENDED;
	}
	if (strncmp(line, "ok ", 3)) {
		err_set(&e, 0, "the supervisor's answer was not understood");
		return ckpt_failed(&e);
	}
	if (settings.verbose)
		fprintf(stderr, TOOL ": done after %.3f s\n",
			(clock_ns(CLOCK_MONOTONIC) - asked_ns) / 1e9);
	printf("%s\n", line + 3);
	return status_of_output();
}

/* Seconds until the supervisor gives up, 0: never. */
static unsigned limit_s(void)
{
	return settings.deadline_s ? settings.deadline_s : settings.timeout_s;
}

static uint64_t deadline_after(unsigned limit, uint64_t grace_ns)
{
	return limit ? asked_ns + limit * 1000000000ull + grace_ns : 0;
}

/* What the options ask for, as a line; the caller's to free. */
static char *request_text(void)
{
	settings.request.deadline_ns = deadline_after(limit_s(), 0);
	settings.request.foresee = settings.deadline_s;
	settings.request.drain_ns = settings.drain_s * 1000000000ull;
	return checkpoint_request_text(&settings.request);
}

/* ---- of a job: all members of it ---- */

static void print_notice(const char *line)
{
	progress_end();
	fprintf(stderr, TOOL ": %s\n", line);
}

static unsigned rest_s(void)
{
	static const struct supervisor_options defaults = SUPERVISOR_OPTION_DEFAULTS;

	return settings.drain_s ? settings.drain_s : defaults.drain_s;
}

static int ask_job(const char *dir)
{
	cleanup_free char *text = request_text();
	struct coordinate_request request = {.dir = dir,
		.text = text,
		.stop = settings.request.stop,
		.signalled = -1,
		.deadline_ns = deadline_after(limit_s(), 0),
		.deadline_option = checkpoint_deadline_option(&settings.request),
		.rest_ns = rest_s() * 1000000000ull,
		.connect = control_connect,
		.notice = print_notice};
	cleanup_free char *path = NULL;
	struct err e = ERR_INIT;
	int r;

	if (settings.request.try_restart) {
		err_set(&e, 0,
			"--try is not for jobs of several members: a restart of those is tried "
			"with "
			"--stop only");
		return ckpt_failed(&e);
	}
	if (settings.verbose)
		fprintf(stderr, TOOL ": asking all members of the job in %s\n", dir);
	progress_begin(TOOL, "checkpointing");
	r = coordinate(&request, &path, &e);
	progress_end();
	if (r == COORDINATE_KEPT) {
		fprintf(stderr, TOOL ": %s\n", e.msg);
		return NOT_ENDED;
	}
	if (r < 0)
		return ckpt_failed(&e);
	printf("%s\n", path);
	return status_of_output();
}

/* The directory, when a process is a member of a job; its answer says so. */
static char *job_of(char *answer)
{
	return strncmp(answer, "job ", 4) ? NULL : take_line(&answer) + 4;
}

static int ask_supervisor(pid_t pid)
{
	cleanup_buf struct buf answer = {0};
	struct err e = ERR_INIT;
	uint64_t deadline_ns = 0;
	pid_t supervisor;
	cleanup_fd int fd = control_connect(pid, &supervisor, &e);
	cleanup_free char *request = NULL, *line = NULL;
	char *job;
	int r;

	if (fd < 0)
		return ckpt_failed(&e);
	if (settings.verbose)
		fprintf(stderr, TOOL ": asking supervisor %d\n", supervisor);
	/* With --deadline the disk may take longer, when all is written: then it is said so. */
	deadline_ns = deadline_after(settings.timeout_s, GRACE_NS);
	request = settings.status ? xstrdup("status") : request_text();
	line = xasprintf("%s\n", request);
	progress_begin(TOOL, settings.status ? "asking" : "checkpointing");
	r = control_ask(fd, supervisor, line, deadline_ns, &answer, &e);
	progress_end();
	if (r < 0)
		return ckpt_failed(&e);
	job = job_of(answer.data);
	if (job)
		return ask_job(job);
	return settings.status ? print_status(answer.data) : print_checkpoint(answer.data);
}

/* ---- watching ---- */

#define WATCH_MS 250

/* What is watched, as a line: the checkpoint that is being taken, or the last one. */
static void watch_text(const struct status_line *l, size_t n, struct buf *out)
{
	char stored[32];

	if (*value_of(l, n, "phase")) {
		add_under_way(l, n, out);
	} else if (*value_of(l, n, "last_path")) {
		format_bytes(number_of(l, n, "last_stored_bytes"), stored, sizeof(stored));
		buf_printf(out, "%s, %s stored, pause %.1f ms", value_of(l, n, "last_path"),
			stored, number_of(l, n, "last_pause_ns") / 1e6);
	} else {
		buf_printf(out, "no checkpoint yet");
	}
	buf_grow(out, 1);
}

/* Prints what differs from @before, which it replaces. */
static int watch_once(pid_t pid, struct buf *before, struct err *e)
{
	cleanup_buf struct buf answer = {0}, now = {0};
	struct status_line lines[STATUS_LINES];
	pid_t supervisor;
	cleanup_fd int fd = control_connect(pid, &supervisor, e);
	size_t n;

	if (fd < 0 || control_ask(fd, supervisor, "status\n", 0, &answer, e) < 0)
		return -1;
	n = split_lines(answer.data, lines, STATUS_LINES);
	watch_text(lines, n, &now);
	if (before->len == now.len && !memcmp(before->data, now.data, now.len))
		return 0;
	printf("%s\n", (char *)now.data);
	before->len = 0;
	buf_add(before, now.data, now.len);
	return status_of_output();
}

/* The program's end is the end, and no failure, once there was something to be seen. */
static int watch_progress(pid_t pid)
{
	cleanup_buf struct buf before = {0};
	struct err e = ERR_INIT;
	int r;

	while (!(r = watch_once(pid, &before, &e)))
		sleep_ns(WATCH_MS * 1000000);
	return r < 0 ? before.len ? 0 : ckpt_failed(&e) : r;
}

int main(int argc, char *argv[])
{
	const struct opt_group groups[] = {{"Options", rows, &settings}, {0}};
	const struct opts opts = {
		.tool = TOOL,
		.operands = "PID|DIR",
		.about =
			"Checkpoint what trecr-run or trecr-restart runs, and print the path.\n"
			"PID is its process id or that of any process of the program; DIR is "
			"the\n"
			"directory of a job, of which all members are checkpointed.",
		.groups = groups,
		.usage_status = 1,
	};
	cleanup_free char *dir = NULL;
	struct err e = ERR_INIT;
	struct operands operands;
	int status = opts_parse(&opts, argc, argv, &operands);
	unsigned pid;

	if (status >= 0)
		return status;
	if (settings.json)
		settings.status = true;
	if (settings.watch && (!settings.status || settings.json))
		return opts_misused(&opts, "--watch goes with --status, and not with --json");
	if (settings.deadline_s && settings.timeout_s)
		return opts_misused(&opts, "--deadline and --timeout exclude each other");
	if (settings.status && settings.request.stop)
		return opts_misused(&opts, "--stop and --status exclude each other");
	if (settings.request.stop && settings.request.fork)
		return opts_misused(&opts,
			"--stop and --fork exclude each other: the program does not run on");
	if (settings.request.try_restart && (settings.request.stop || settings.request.fork))
		return opts_misused(&opts,
			settings.request.stop
				? "--try and --stop exclude each other: --stop tries a restart"
				: "--try and --fork exclude each other: the program does not "
				  "run "
				  "during a trial");
	if (settings.request.no_try && settings.request.verify)
		return opts_misused(&opts, "--no-try and --verify exclude each other");
	if ((settings.request.no_try || settings.request.verify) && !settings.request.stop)
		return opts_misused(&opts, "--no-try and --verify go with --stop");
	if (operands.count != 1)
		return opts_misused(&opts, "there must be one PID or DIR");
	asked_ns = clock_ns(CLOCK_MONOTONIC);
	if (opt_positive(&pid, operands.v[0], NULL) == 0)
		return settings.watch ? watch_progress(pid) : ask_supervisor(pid);
	if (settings.status)
		return opts_misused(&opts, "--status takes a process id");
	dir = options_absolute(operands.v[0], &e);
	return dir ? ask_job(dir) : ckpt_failed(&e);
}
