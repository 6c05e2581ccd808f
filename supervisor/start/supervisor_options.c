/*
 * supervisor_options.c - kinds of values, and the table of options.
 */
#include "supervisor/start/supervisor_options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/util.h"

#define FIELD(name) offsetof(struct supervisor_options, name)

static const char *const tcp_modes[] = {
	[FD_TCP_REFUSE] = "refuse",
	[FD_TCP_RESET] = "reset",
	[FD_TCP_KEEP] = "keep",
};

int opt_tcp(void *field, const char *value, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(tcp_modes); i++)
		if (!strcmp(value, tcp_modes[i])) {
			*(enum fd_tcp *)field = i;
			return 0;
		}
	return err_set(e, 0, "must be refuse, reset or keep");
}

const char *opt_tcp_text(enum fd_tcp mode)
{
	return tcp_modes[mode];
}

int opt_compress(void *field, const char *value, struct err *e)
{
	return pack_choice_parse(field, value, e);
}

static int opt_dirty(void *field, const char *value, struct err *e)
{
	enum dirty_mode *mode = field;

	if (!strcmp(value, "hash"))
		*mode = DIRTY_HASH;
	else if (!strcmp(value, "uffd"))
		*mode = DIRTY_UFFD;
	else
		return err_set(e, 0, "must be hash or uffd");
	return 0;
}

int opt_bytes(void *field, const char *value, struct err *e)
{
	static const char units[] = "KMGT";
	unsigned long long size;
	const char *unit;
	char *end;

	errno = 0;
	size = strtoull(value, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (errno || end == value || *value == '-' || !size || (*end && (!unit || end[1])) ||
		(unit && size >> (54 - 10 * (unit - units))))
		return err_set(e, 0, "is not a size (such as 512K or 2G)");
	*(uint64_t *)field = unit ? size << (10 * (unit - units + 1)) : size;
	return 0;
}

/* None at all, too. */
static int opt_limit(void *field, const char *value, struct err *e)
{
	if (strcmp(value, "0"))
		return opt_bytes(field, value, e);
	*(uint64_t *)field = 0;
	return 0;
}

static int opt_size(void *field, const char *value, struct err *e)
{
	if (*value)
		return opt_bytes(field, value, e);
	*(uint64_t *)field = SAVE_FILES_DEFAULT;
	return 0;
}

/* char *, from malloc(): DIR[:DIR]..., made absolute, as a list of strings: their absolute names may have colons. */
static int opt_directories(void *field, const char *value, struct err *e)
{
	cleanup_free char *copy = xstrdup(value);
	cleanup_buf struct buf all = {0};
	char *rest = copy, *one;

	while ((one = strsep(&rest, ":"))) {
		cleanup_free char *path = *one ? options_absolute(one, e) : NULL;

		if (!*one)
			return err_set(e, 0, "a directory's name is empty");
		if (!path)
			return -1;
		buf_add(&all, path, strlen(path) + 1);
	}
	buf_grow(&all, 1); /* the empty string, which ends the list */
	free(*(char **)field);
	*(char **)field = steal_ptr(all.data);
	return 0;
}

const struct opt supervisor_option_rows[] = {
	{'d', "dir", "DIR", "where checkpoints go", opt_text, FIELD(dir)},
	{'i', "interval", "SEC", "take a checkpoint every SEC seconds (0: none)", opt_number,
		FIELD(interval_s)},
	{'k', "keep", "N", "keep the newest N checkpoints (default 2)", opt_positive,
		FIELD(keep)},
	{0, "incremental", NULL, "write only what has changed since the last one", opt_flag,
		FIELD(incremental)},
	{0, "dirty", "HOW",
		"with --incremental: find what has changed by\n"
		"hashes of all memory (hash, default), or by what\n"
		"the kernel knows (uffd)",
		opt_dirty, FIELD(dirty)},
	{0, "full-every", "N",
		"with --incremental: make every Nth a full one\n"
		"(default 10, 0: never)",
		opt_number, FIELD(full_every)},
	{0, "fork", NULL, HELP_FORK " (with -i: always)", opt_flag, FIELD(fork)},
	{0, "fork-limit", "BYTES",
		"stop the program for that where the copy could take\n"
		"more (default: half of what memory is available;\n"
		"0: always)",
		opt_limit, FIELD(fork_limit)},
	{0, "portable", NULL, "store mapped files (program, libraries) as well", opt_flag,
		FIELD(portable)},
	{0, "save-files", "[=SIZE]",
		"save contents of files that are open for writing,\n"
		"of SIZE bytes (K, M, G; default 256M) at most each",
		opt_size, FIELD(save_files)},
	{0, "save-dirs", "DIR[:DIR]...",
		"save all files in these directories, open or not\n"
		"(implies --save-files)",
		opt_directories, FIELD(save_directories)},
	{0, "compress", "METHOD",
		"compress memory in the image: lz4, zstd[:LEVEL], or\n"
		"none (default)",
		opt_compress, FIELD(compress)},
	{'j', "jobs", "N",
		"write and read memory with N threads (default: the\n"
		"number of processors, at most 4, or 16 with\n"
		"--compress)",
		opt_positive, FIELD(threads)},
	{0, "rate", "BYTES", HELP_RATE, opt_bytes, FIELD(rate)},
	{0, "ckpt-signal", "SIG", "take a checkpoint when SIG is sent to this process",
		opt_signal, FIELD(ckpt_signal)},
	{0, "deadline", "SEC",
		"with --ckpt-signal: give up as soon as it is clear\n"
		"that it takes longer than SEC seconds",
		opt_positive, FIELD(deadline_s)},
	{0, "alone", NULL,
		"save this process by itself, even where a launcher\n"
		"(mpiexec, srun) has started several",
		opt_flag, FIELD(alone)},
	{0, "interface", "NAME",
		"let the members of a job on several machines reach\n"
		"each other by this network interface (default: any)",
		opt_text, FIELD(interface)},
	{0, "tcp", "MODE",
		"TCP connections to the outside: refuse the\n"
		"checkpoint (default), reset them at a restart, or\n"
		"keep them (needs a privilege)",
		opt_tcp, FIELD(tcp)},
	{0, "drain-timeout", "SEC",
		"how long GPUs may take to finish their work, and\n"
		"MPI programs to come to rest (default 30)",
		opt_positive, FIELD(drain_s)},
	{'v', "verbose", NULL, HELP_VERBOSE, opt_flag, FIELD(verbose)},
	{0},
};

/* What a file may be called that is not there yet. */
static bool is_name(const char *name)
{
	return *name && strcmp(name, ".") && strcmp(name, "..");
}

char *options_absolute(const char *path, struct err *e)
{
	cleanup_free char *cwd = NULL, *parent = NULL, *real = NULL;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (path[0] == '/')
		return xstrdup(path);
	/* The way through ".." may be gone later. */
	parent = is_name(name) ? xasprintf("%.*s", slash ? (int)(slash - path) : 1,
					 slash ? path : ".")
			       : xstrdup(path);
	real = realpath(parent, NULL);
	if (real && !is_name(name))
		return steal_ptr(real);
	if (real)
		return xasprintf("%s%s%s", real, real[1] ? "/" : "", name);
	cwd = getcwd(NULL, 0);
	if (!cwd) {
		err_set(e, errno, "cannot find the current directory for %s", path);
		return NULL;
	}
	return xasprintf("%s%s%s", cwd, cwd[1] ? "/" : "", path);
}
