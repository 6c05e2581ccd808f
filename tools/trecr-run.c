/*
 * trecr-run - run a program so that it can be checkpointed.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "ckpt/store_early_check.h"
#include "lib/opts.h"
#include "lib/util.h"
#include "supervisor/job/join_job.h"
#include "supervisor/job/launcher_rank.h"
#include "supervisor/run/loop.h"
#include "supervisor/split/gpu_libraries.h"
#include "supervisor/split/launcher_restore.h"
#include "supervisor/split/mpi_libraries.h"
#include "supervisor/start/inherited_check.h"
#include "supervisor/start/kernel_check.h"
#include "supervisor/start/spawn.h"
#include "supervisor/start/supervisor.h"
#include "supervisor/start/supervisor_options.h"

static struct program_options {
	bool close_fds;
	enum gpu_use gpu;
	enum mpi_use mpi;
	const char *coverage;
} program_options;

static const struct opt program_rows[] = {
	{0, "close-fds", NULL, "start COMMAND with descriptors 0, 1 and 2 only", opt_flag,
		offsetof(struct program_options, close_fds)},
	{0, "gpu", "WHEN",
		"checkpoint GPU programs, too: auto (the default:\n"
		"where there is a driver), on or off",
		gpu_option, offsetof(struct program_options, gpu)},
	{0, "mpi", "WHERE",
		"where MPICH's library is: in the program (whole), in\n"
		"its lower half (lower), or there if a launcher has\n"
		"started it for one rank (auto, the default)",
		mpi_option, offsetof(struct program_options, mpi)},
	{0, "coverage", "FILE", "write which functions of the GPU driver are used", opt_text,
		offsetof(struct program_options, coverage)},
	{0},
};

static int run_failed(const struct supervisor *s, int status, const struct err *e)
{
	fprintf(stderr, "%s: %s\n", s->tool, e->msg);
	return status;
}

static char *join_words(char *const words[])
{
	cleanup_buf struct buf b = {0};

	for (int i = 0; words[i]; i++)
		buf_printf(&b, "%s%s", i ? " " : "", words[i]);
	buf_grow(&b, 1);
	return steal_ptr(b.data);
}

/* Where checkpoints go; without the program's id, which is not known yet, when the place is
 * named after it. NULL on failure. */
static char *choose_dir(const char *chosen, const char *command, bool *add_pid, struct err *e)
{
	cleanup_free char *named = NULL;
	const char *slash = strrchr(command, '/');

	if (!chosen || !*chosen)
		chosen = getenv("TRECR_DIR");
	*add_pid = !chosen || !*chosen;
	if (*add_pid)
		chosen = named = xasprintf("trecr-%s", slash ? slash + 1 : command);
	return options_absolute(chosen, e);
}

/* The connection to the launcher, if the MPI library in the lower half takes it over; else -1. */
static int lower_connection(void)
{
	return program_options.mpi == MPI_LOWER ? launcher_connection() : -1;
}

/* An MPI library in the program needs its connection to the launcher, so --close-fds alone would end the program. */
static void warn_of_inherited(const struct supervisor *s)
{
	int connection = launcher_connection();
	bool needed = connection >= 0 && program_options.mpi != MPI_LOWER &&
		      !program_options.close_fds;
	struct inherited inherited = inherited_check(connection);
	cleanup_free char *fds = inherited.held, *unreachable = inherited.out_of_reach;

	if (needed)
		fprintf(stderr,
			"%s: no checkpoint will be possible while the program has descriptor "
			"%d, its connection to the launcher (for an MPI program, "
			"--mpi=lower takes it out of the way; for others, --close-fds)\n",
			s->tool, connection);
	if (fds)
		fprintf(stderr,
			"%s: no checkpoint will be possible while the program has descriptor "
			"%s, which %s (--close-fds%s starts it without)\n",
			s->tool, fds,
			strchr(fds, ',') ? "lead to other processes"
					 : "leads to another process",
			needed ? " with --mpi=lower" : "");
	if (unreachable)
		fprintf(stderr,
			"%s: no checkpoint will be possible while the program has descriptor "
			"%s, as user %u may not enter its directory: choose a file that this "
			"user can reach, or trecr-run COMMAND | cat >FILE\n",
			s->tool, unreachable, geteuid());
}

static void warn_of_refused(const struct supervisor *s)
{
	cleanup_free char *calls = kernel_refused();
	const char *policy = calls ? NULL : kernel_forbids_ptrace();

	if (calls)
		fprintf(stderr,
			"%s: no checkpoint will be possible, as the kernel refuses %s (a "
			"container that forbids this? docker run --cap-add SYS_PTRACE allows "
			"it)\n",
			s->tool, calls);
	if (policy)
		fprintf(stderr, "%s: no checkpoint will be possible: %s\n", s->tool, policy);
}

/* What would make checkpoints fail, maybe hours later. A directory that was chosen and cannot
 * be written is a mistake; without one the program may never be meant to be saved. */
static int look_ahead(const struct supervisor *s, const char *dir, bool chosen, struct err *e)
{
	enum store_early_check early = store_early_check(dir, e);

	warn_of_inherited(s);
	warn_of_refused(s);
	if (early == STORE_EARLY_BAD && chosen)
		return err_prefix(e, "checkpoints could not be written");
	if (early != STORE_EARLY_GOOD)
		fprintf(stderr, "%s: as it is now, no checkpoint could be written: %s\n",
			s->tool, e->msg);
	return 0;
}

/* All above 2 but the launcher's connection. */
static int close_inherited(void)
{
	int kept = lower_connection();

	if (kept < 0)
		return close_range(3, ~0u, 0);
	return (kept > 3 && close_range(3, kept - 1, 0)) || close_range(kept + 1, ~0u, 0);
}

/* Whether a launcher has started this process for a rank of what may be an MPI program, which would need the
 * connection to it: the only rank has one, or needs no launcher. */
static bool is_rank(void)
{
	int rank, size;

	return !program_options.close_fds &&
	       (rank_of_launcher(&rank, &size) || launcher_connection() >= 0);
}

static void adapt_to_launcher(void)
{
	pid_t launcher[4], above;
	size_t count;

	program_options.mpi = mpi_choose(program_options.mpi, is_rank());
	count = launcher_processes(launcher, ARRAY_SIZE(launcher), &above);
	inherited_close_launchers(launcher, count, above, launcher_connection());
}

static int run_program(struct supervisor *s, char *const argv[])
{
	cleanup_free char *dir = NULL;
	struct err e = ERR_INIT;
	int status = OWN_FAILURE;
	bool add_pid;

	if (kernel_check(&e))
		return run_failed(s, status, &e);
	adapt_to_launcher();
	if (program_options.close_fds && close_inherited()) {
		err_set(&e, errno, "cannot close the descriptors above 2");
		return run_failed(s, status, &e);
	}
	if (getrandom(s->job_id, sizeof(s->job_id), 0) != sizeof(s->job_id)) {
		err_set(&e, errno, "cannot get random numbers");
		return run_failed(s, status, &e);
	}
	dir = choose_dir(s->options.dir, argv[0], &add_pid, &e);
	if (!dir || look_ahead(s, dir, !add_pid, &e) < 0 ||
		(!add_pid && job_join_supervisor(s, dir, NULL, &e) < 0) ||
		gpu_prepare(program_options.gpu, program_options.coverage, &e) < 0 ||
		mpi_prepare(program_options.mpi, &e) < 0 || loop_prepare(s, &e) < 0 ||
		spawn_program(s, argv, &status, &e) < 0) {
		loop_end(s);
		return run_failed(s, status, &e);
	}
	s->started_realtime_ns = clock_ns(CLOCK_REALTIME);
	s->options.dir = add_pid ? xasprintf("%s-%d", dir, s->root) : xstrdup(dir);
	if (s->options.verbose)
		fprintf(stderr, "%s: process %d runs, checkpoints go to %s\n", s->tool, s->root,
			s->options.dir);
	status = loop_run(s);
	if (program_options.coverage)
		gpu_finish_coverage(program_options.coverage);
	return status;
}

int main(int argc, char *argv[])
{
	static struct supervisor s = SUPERVISOR_INIT("trecr-run");
	const struct opt_group groups[] = {
		{"Options", supervisor_option_rows, &s.options},
		{"Options for the program", program_rows, &program_options},
		{0},
	};
	const struct opts opts = {
		.tool = s.tool,
		.operands = "COMMAND [ARGUMENT]...",
		.about = "Run COMMAND so that trecr-ckpt can checkpoint it and all its "
			 "descendants.",
		.groups = groups,
		.stop_at_operand = true,
		.usage_status = OWN_FAILURE,
	};
	struct operands command;
	int status;

	s.options = (struct supervisor_options)SUPERVISOR_OPTION_DEFAULTS;
	status = opts_parse(&opts, argc, argv, &command);
	if (status >= 0)
		return status;
	if (!command.count)
		return opts_misused(&opts, "there is no COMMAND to run");
	s.command = join_words(command.v);
	return run_program(&s, command.v);
}
