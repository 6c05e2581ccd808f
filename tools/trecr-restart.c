/*
 * trecr-restart - bring a program back from a checkpoint and supervise it again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "ckpt/image_memory.h"
#include "ckpt/members.h"
#include "ckpt/store.h"
#include "ckpt/store_dir.h"
#include "lib/limits.h"
#include "lib/opts.h"
#include "lib/progress.h"
#include "lib/util.h"
#include "supervisor/job/join_job.h"
#include "supervisor/job/member_files.h"
#include "supervisor/job/part_of_job.h"
#include "supervisor/restore/release_choice.h"
#include "supervisor/restore/restore.h"
#include "supervisor/job/restart_barrier.h"
#include "supervisor/run/loop.h"
#include "supervisor/split/gpu_map.h"
#include "supervisor/split/mpi_libraries.h"
#include "supervisor/start/kernel_check.h"
#include "supervisor/start/run_options.h"
#include "supervisor/start/supervisor.h"
#include "supervisor/start/supervisor_options.h"
#include "supervisor/start/terminal.h"

#define TOOL "trecr-restart"

static struct settings {
	bool detach, verify, rollback_files, namespace, force, forget_options, lazy, gpu_other;
	enum freeze_clock freeze_clock;
	const char *pidfile, *mpi, *gpu_map;
} settings;

#define FIELD(name) offsetof(struct settings, name)

static const char *const freeze_clock_names[] = {
	[FREEZE_CLOCK_AUTO] = "auto",
	[FREEZE_CLOCK_ALWAYS] = "always",
	[FREEZE_CLOCK_NEVER] = "never",
};

static int opt_freeze_clock(void *field, const char *value, struct err *e)
{
	const char *name = *value ? value : "always";

	for (size_t i = 0; i < ARRAY_SIZE(freeze_clock_names); i++)
		if (!strcmp(name, freeze_clock_names[i])) {
			*(enum freeze_clock *)field = i;
			return 0;
		}
	return err_set(e, 0, "must be auto, always or never");
}

static const struct opt rows[] = {
	{'D', "detach", NULL, "run in the background, print the supervisor's pid", opt_flag,
		FIELD(detach)},
	{0, "pidfile", "FILE", "write the supervisor's process id to FILE", opt_text,
		FIELD(pidfile)},
	{0, "verify", NULL, "check all data before anything else is done", opt_flag,
		FIELD(verify)},
	{0, "lazy", NULL, "let it run at once, and fill its memory meanwhile", opt_flag,
		FIELD(lazy)},
	{0, "rollback-files", NULL, "move what files have gained to FILE.trecr-tail", opt_flag,
		FIELD(rollback_files)},
	{0, "force", NULL, "bring it back even if it is already running", opt_flag,
		FIELD(force)},
	{0, "namespace", NULL, "use a new pid namespace even if ids are free", opt_flag,
		FIELD(namespace)},
	{0, "freeze-clock", "[=WHEN]",
		"let its clocks continue from the checkpoint: always\n"
		"(without WHEN), never, or auto (the default): after\n"
		"a reboot or on another machine",
		opt_freeze_clock, FIELD(freeze_clock)},
	{0, "mpi", "WHICH",
		"the MPI library that ranks load: auto (the default:\n"
		"the launcher's), same, mpich, openmpi, or a file",
		mpi_library_option, FIELD(mpi)},
	{0, "gpu-map", "OLD:NEW,...", "which GPU takes the place of which", gpu_map_option,
		FIELD(gpu_map)},
	{0, "gpu-other", NULL, "accept another GPU model, or build of its driver", opt_flag,
		FIELD(gpu_other)},
	{0, "forget-options", NULL, "do not use the options of its trecr-run", opt_flag,
		FIELD(forget_options)},
	{0},
};

static int restart_failed(const struct err *e)
{
	progress_end();
	fprintf(stderr, TOOL ": %s\n", e->msg);
	return OWN_FAILURE;
}

static void print_notice(const char *line)
{
	progress_end();
	fprintf(stderr, TOOL ": %s\n", line);
}

/* What the user names is there only while it is true: the file is made beside it. What is no
 * regular file (a pipe, a terminal) is written as it is. */
struct pidfile {
	int fd;       /* -1: none is wanted */
	char *beside; /* NULL: the file itself is open */
	bool in_place;
};

/* A file of that name is of a process that had our id, and was killed. */
static int open_beside(const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd = open(name, flags, 0644);

	if (fd < 0 && errno == EEXIST && !unlink(name))
		fd = open(name, flags, 0644);
	return fd;
}

/* The symbolic links in it are to stay where they are, too. */
static char *absolute_as_it_is(const char *path)
{
	cleanup_free char *cwd = *path == '/' ? NULL : getcwd(NULL, 0);

	return cwd ? xasprintf("%s/%s", cwd, path) : xstrdup(path);
}

/* Open before the restart, so that a mistake shows before the program runs. */
static int open_pidfile(struct supervisor *s, struct pidfile *p, struct err *e)
{
	struct stat st;

	*p = (struct pidfile){.fd = -1};
	if (!settings.pidfile)
		return 0;
	s->pidfile = absolute_as_it_is(settings.pidfile);
	if (stat(settings.pidfile, &st) == 0 && !S_ISREG(st.st_mode)) {
		p->fd = open(settings.pidfile, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	} else {
		p->beside = xasprintf("%s.%d", settings.pidfile, getpid());
		p->fd = open_beside(p->beside);
	}
	return p->fd < 0 ? err_set(e, errno, "cannot create %s", settings.pidfile) : 0;
}

static int write_pidfile(struct pidfile *p, struct err *e)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%d\n", getpid());

	if (p->fd < 0)
		return 0;
	if (write_all(p->fd, text, n, settings.pidfile, e) < 0)
		return -1;
	if (p->beside && rename(p->beside, settings.pidfile) < 0)
		return err_set(e, errno, "cannot create %s", settings.pidfile);
	p->in_place = true;
	return 0;
}

/* After a failure, and at the end. Either may have been moved away meanwhile, or be another's
 * by now. */
static void remove_pidfile(struct pidfile *p)
{
	const char *name = p->in_place ? settings.pidfile : p->beside;
	struct stat ours, there;

	if (p->fd >= 0 && p->beside && !fstat(p->fd, &ours) && !lstat(name, &there) &&
		ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
		(void)unlink(name);
	util_close(&p->fd);
	free(p->beside);
	p->beside = NULL;
}

/* The other members of the job, if it is one. */
struct company {
	const char *image, *from;        /* the whole as the user named it, and its name */
	const uint8_t *id;               /* that our image is to have */
	struct restart_barrier *barrier; /* NULL: not yet */
	bool silent;                     /* another rank says why it has failed */
};

/* They are to be there before anything is made. */
static int find_company(struct supervisor *s, struct company *company, struct err *e)
{
	if (!company)
		return 0;
	if (loop_prepare(s, e))
		return -1;
	company->barrier =
		restart_barrier_begin(s, company->from, loop_serve, &company->silent, e);
	return company->barrier ? 0 : -1;
}

static struct checkpoint *open_shared(const char *image, struct err *e)
{
	struct checkpoint *c;

	image_memory_share(true);
	c = checkpoint_open(image, e);
	image_memory_share(false);
	return c;
}

/* Refuses an image that was exchanged for another checkpoint's. */
static struct checkpoint *open_image(
	const char *image, const struct company *company, struct err *e)
{
	struct checkpoint *c = open_shared(image, e);

	if (!c || !company ||
		!memcmp(c->job->super.checkpoint_id, company->id,
			sizeof(c->job->super.checkpoint_id)))
		return c;
	err_set(e, 0, "%s is of another checkpoint than the others", image);
	checkpoint_close(c);
	return NULL;
}

static int bring_back(
	struct supervisor *s, struct checkpoint *c, struct company *company, struct err *e)
{
	struct restore_options options = {
		.rollback_files = settings.rollback_files,
		.force = settings.force,
		.force_namespace = settings.namespace,
		.freeze_clock = settings.freeze_clock,
		.lazy = settings.lazy,
		.mpi = settings.mpi,
		.gpu_other = settings.gpu_other,
		.gpu_map = settings.gpu_map,
		.threads = s->options.threads,
		.verbose = s->options.verbose,
		.notice = print_notice,
		.about_to_run = progress_end,
		.put_off = loop_put_off,
	};
	int r;

	s->restarted = true;
	s->mpi_library = settings.mpi;
	progress_begin(TOOL, "restarting");
	if (settings.verify && checkpoint_verify(c, e) < 0)
		return err_prefix(e, "%s is damaged", c->path);
	s->options.dir =
		s->options.dir ? options_absolute(s->options.dir, e) : xstrdup(c->parent);
	if (!s->options.dir || (settings.detach && terminal_check_detached(c->job, e)))
		return -1;
	s->started_realtime_ns = clock_ns(CLOCK_REALTIME);
	r = company ? 0 : loop_prepare(s, e);
	if (company) {
		options.all_back = restart_barrier_wait;
		options.look_at_others = restart_barrier_look;
		options.share = restart_barrier_share;
		options.others = company->barrier;
		options.restart = restart_barrier_word(company->barrier, e);
		if (!options.restart)
			return -1;
	}
	if (r == 0)
		r = restore_start(s, c, &options, e);
	return r;
}

/* In a job one rank says why. It does so before the others end, as launchers end all then. */
static int restart_of_all_failed(
	struct supervisor *s, const char *image, struct company *company, struct err *e)
{
	struct restart_barrier *barrier = company ? company->barrier : NULL;
	int status = OWN_FAILURE;

	if (company && barrier)
		company->silent = restart_barrier_failed(barrier, e);
	if (!company || !company->silent) {
		err_prefix(e, "cannot restart %s", image);
		status = restart_failed(e);
	}
	if (barrier)
		restart_barrier_end(barrier);
	loop_end(s);
	return status;
}

static void say_where_to(const struct supervisor *s)
{
	fprintf(stderr, TOOL ": process %d runs, checkpoints go to %s", s->root,
		s->options.dir);
	if (s->options.interval_s)
		fprintf(stderr, ", one every %u s", s->options.interval_s);
	fputc('\n', stderr);
}

static void name_older(const char *image, struct err *e)
{
	cleanup_free char *older = checkpoint_older(image);

	if (older)
		err_append(e,
			"; an older checkpoint is %s (trecr-inspect --verify tells whether it "
			"is whole)",
			older);
}

/* Bring the program back and stay with it. @ready is told when it runs. @c is closed; NULL: @image is opened. */
static int restart_and_supervise(struct supervisor *s, const char *image, struct checkpoint *c,
	struct company *company, void (*ready)(void *), void *arg)
{
	struct err e = ERR_INIT;
	struct pidfile pidfile = {.fd = -1};
	int status;

	if (find_company(s, company, &e) || (!c && !(c = open_image(image, company, &e))) ||
		open_pidfile(s, &pidfile, &e) < 0 || bring_back(s, c, company, &e) < 0) {
		if (!company && (!c || e.remedy == ERR_DAMAGED))
			name_older(image, &e);
		checkpoint_close(c);
		remove_pidfile(&pidfile);
		return restart_of_all_failed(s, company ? company->image : image, company, &e);
	}
	if (company)
		restart_barrier_end(company->barrier);
	if (s->options.verbose)
		say_where_to(s);
	checkpoint_close(c);
	/* The program runs by now: no reason to end it. */
	if (write_pidfile(&pidfile, &e) < 0) {
		remove_pidfile(&pidfile);
		print_notice(e.msg);
	}
	ready(arg);
	status = loop_run(s);
	remove_pidfile(&pidfile);
	return status;
}

/* ---- in the background ---- */

static void tell_nobody(void *arg)
{
}

static void tell_foreground(void *arg)
{
	int *fd = arg;

	/* A foreground that was interrupted misses nothing but the id. */
	(void)!write(*fd, "", 1);
	close(*fd);
}

/* The foreground: waits until the program is back or the attempt has failed, which the
 * background has reported on the standard error that both have. */
static int await_background(pid_t background, int fd)
{
	int status;
	char byte;

	if (read(fd, &byte, 1) == 1) {
		printf("%d\n", background);
		if (fflush(stdout) == 0)
			return 0;
		print_notice("cannot write the supervisor's process id to standard output");
		return OWN_FAILURE;
	}
	if (waitpid(background, &status, 0) != background || !WIFEXITED(status)) {
		print_notice("the background process died before the program was brought back");
		return OWN_FAILURE;
	}
	return WEXITSTATUS(status);
}

static int run_in_background(struct supervisor *s, const char *image, struct checkpoint *c)
{
	struct err e = ERR_INIT;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		limit_err(&e, errno, SYS_fork, "cannot create a background process");
		return restart_failed(&e);
	}
	if (pid) {
		close(ends[1]);
		return await_background(pid, ends[0]);
	}
	close(ends[0]);
	if (setsid() < 0) {
		err_set(&e, errno, "cannot create a session for the background process");
		return restart_failed(&e);
	}
	return restart_and_supervise(s, image, c, NULL, tell_foreground, &ends[1]);
}

/* ---- of a job ---- */

/* The others say the same: they let rank 0 say it, and wait a moment, as launchers end all when
 * one fails. */
static int fail_for_all(int rank, const char *image, struct err *e)
{
	if (!rank) {
		err_prefix(e, "cannot restart %s", image);
		return restart_failed(e);
	}
	sleep_ns(1000000000);
	return OWN_FAILURE;
}

/* Become the member again, and see that all others come. */
static int join_again(struct supervisor *s, struct part_of_job *p, struct err *e)
{
	char *name = strrchr(p->whole, '/');

	*name++ = 0;
	s->options.dir =
		s->options.dir ? options_absolute(s->options.dir, e) : xstrdup(p->whole);
	if (!s->options.dir)
		return -1;
	if (settings.detach)
		return err_set(e, 0, "--detach is not for the members of a job");
	return job_join_supervisor(s, s->options.dir, name, e);
}

static int supervise_part(struct supervisor *s, struct part_of_job *p, const char *image)
{
	struct company company = {
		.image = image, .from = strrchr(p->whole, '/') + 1, .id = p->id};
	struct err e = ERR_INIT;

	if (join_again(s, p, &e)) {
		err_prefix(&e, "cannot restart %s", image);
		if (s->options.dir && !job_may_complain(s->options.dir))
			return OWN_FAILURE;
		return restart_failed(&e);
	}
	return restart_and_supervise(
		s, p->image, NULL, s->job ? &company : NULL, tell_nobody, NULL);
}

/* A program on a GPU resumes with the release that it was started by, and so does any whose image
 * is of another format. Returns when that release is this one, or is not installed; the failing restart says
 * why. */
static void hand_over(const char *image, const struct checkpoint *c, char *const argv[])
{
	cleanup_free char *tool = c ? release_tool(c) : release_tool_unread(image);

	if (tool)
		(void)execv(tool, argv);
}

struct command_line {
	int argc;
	char **argv;
};

/* Parsing drops what it has dealt with, so it is given a copy, which the operands are in. */
static int parse_options(const struct command_line *line, struct supervisor_options *o,
	struct operands *operands, const struct opts **used)
{
	static struct opt_group groups[] = {
		{"Options", rows, &settings},
		{"Further checkpoints", supervisor_option_rows, NULL},
		{0},
	};
	static const struct opts opts = {
		.tool = TOOL,
		.operands = "DIR",
		.about = "Bring back the program whose checkpoint is in DIR;\nthe newest, if "
			 "DIR holds several.",
		.groups = groups,
		.usage_status = OWN_FAILURE,
	};
	char **copy = xcalloc(line->argc + 1, sizeof(*copy));

	memcpy(copy, line->argv, line->argc * sizeof(*copy));
	groups[1].fields = o;
	*used = &opts;
	return opts_parse(&opts, line->argc, copy, operands);
}

/* The command line counts for more than what the program was started with. */
static int go_on_with_options(const struct checkpoint *c, const struct command_line *line,
	struct supervisor_options *o, struct err *e)
{
	struct operands operands;
	const struct opts *opts;

	if (settings.forget_options)
		return 0;
	if (run_options_take(o, c->job, c->info, e))
		return err_prefix(e, "cannot restart %s", c->path);
	(void)parse_options(line, o, &operands, &opts); /* as it could be parsed before */
	return 0;
}

/* The restart itself reports an image that cannot be read: *c is NULL then. */
static int prepare_options(const struct command_line *line, const char *image,
	struct supervisor_options *o, struct checkpoint **c, struct err *e)
{
	*c = open_shared(image, NULL);
	hand_over(image, *c, line->argv);
	return *c ? go_on_with_options(*c, line, o, e) : 0;
}

int main(int argc, char *argv[])
{
	static struct supervisor s = SUPERVISOR_INIT(TOOL);
	const struct command_line line = {argc, argv};
	struct part_of_job part = {0};
	struct operands operands;
	struct checkpoint *c;
	struct err e = ERR_INIT;
	const struct opts *opts;
	int status;

	s.options = (struct supervisor_options)SUPERVISOR_OPTION_DEFAULTS;
	status = parse_options(&line, &s.options, &operands, &opts);
	if (status >= 0)
		return status;
	if (operands.count != 1)
		return opts_misused(opts, "there must be one DIR");
	if (kernel_check_restart(&e))
		return restart_failed(&e);
	if (part_of_job_find(operands.v[0], &part, &e))
		return fail_for_all(part.rank, operands.v[0], &e);
	if (prepare_options(&line, part.image, &s.options, &c, &e))
		return restart_failed(&e);
	if (part.whole) {
		checkpoint_close(c);
		return supervise_part(&s, &part, operands.v[0]);
	}
	if (settings.detach)
		return run_in_background(&s, operands.v[0], c);
	return restart_and_supervise(&s, operands.v[0], c, NULL, tell_nobody, NULL);
}
