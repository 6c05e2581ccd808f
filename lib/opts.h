/*
 * opts.h - one table of options drives parsing, the help text and what is said about errors.
 *
 * A tool fills a struct with its defaults, describes the fields in rows, and calls
 * opts_parse():
 *
 *	static const struct opt rows[] = {
 *		{'d', "dir", "DIR", "where checkpoints go", opt_text,
 *			offsetof(struct mine, dir)},
 *		{'q', "quiet", NULL, "say less", opt_flag, offsetof(struct mine, quiet)},
 *		{0},
 *	};
 *	const struct opt_group groups[] = {{"Options", rows, &mine}, {0}};
 *
 * -h, --help and --version need no rows. Understood are -q, -qd DIR, -dDIR, --dir DIR,
 * --dir=DIR, and -- as the end of the options. getopt_long(3) would need the table twice, and a
 * help text beside it that nothing holds to it; argp(3) is not in every C library.
 */
#ifndef LIB_OPTS_H
#define LIB_OPTS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"

struct opt {
	char letter;      /* 'd' for -d, 0: has none */
	const char *name; /* "dir" for --dir; NULL ends the rows */
	/* Name of the argument in the help, in brackets when it may be left out ("[=WHEN]",
	 * then
	 * --name alone is as with an empty one); NULL: takes none. */
	const char *argument;
	const char *help; /* one line, no full stop; the rest after '\n' is put below it */
	/* Put @value (NULL when the option takes none) into the field. */
	int (*set)(void *field, const char *value, struct err *e);
	size_t field; /* offset in the group's struct */
};

/* Kinds of fields; a tool may have kinds of its own. */
int opt_flag(void *field, const char *value, struct err *e);     /* bool: true */
int opt_text(void *field, const char *value, struct err *e);     /* const char *, not copied */
int opt_number(void *field, const char *value, struct err *e);   /* unsigned */
int opt_positive(void *field, const char *value, struct err *e); /* unsigned, not 0 */
/* int: TERM, SIGTERM, RTMIN+1 or a number; signals that can be caught only */
int opt_signal(void *field, const char *value, struct err *e);

struct opt_group {
	const char *title; /* above these options in the help */
	const struct opt *rows;
	void *fields; /* the struct that the rows' offsets are in */
};

struct opts {
	const char *tool;
	const char *operands;           /* "PID", "COMMAND [ARGUMENT]...": for the usage line */
	const char *about;              /* a sentence or more below the usage line */
	const struct opt_group *groups; /* ended by one without rows */
	bool stop_at_operand;           /* options end at the first operand, as in env(1) */
	int usage_status;               /* exit status after a mistake in the command line */
};

/* What is left when the options have been taken out: ends with NULL, in argv's memory. */
struct operands {
	char **v;
	int count;
};

/* Parse @argv, which is reordered. Prints the help or version (stdout) or what is wrong
 * (stderr) itself. Returns -1 when the tool is to continue, else the status to exit with. */
int opts_parse(const struct opts *o, int argc, char *argv[], struct operands *left);

/* Say "TOOL: WHAT" and where to find help; returns the exit status. */
int opts_misused(const struct opts *o, const char *what, ...)
	__attribute__((format(printf, 2, 3)));

#endif
