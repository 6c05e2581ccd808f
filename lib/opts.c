/*
 * opts.c - the kinds of fields, the help text, then the parser.
 */
#include "lib/opts.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/util.h"

#define HELP_COLUMN 28

/* ---- kinds of fields ---- */

int opt_flag(void *field, const char *value, struct err *e)
{
	*(bool *)field = true;
	return 0;
}

int opt_text(void *field, const char *value, struct err *e)
{
	if (!*value)
		return err_set(e, 0, "is empty");
	*(const char **)field = value;
	return 0;
}

int opt_number(void *field, const char *value, struct err *e)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(value, &end, 10);
	/* strtoul takes signs and white space, which are no numbers here. */
	if (value[0] < '0' || value[0] > '9' || *end)
		return err_set(e, 0, "is not a number");
	if (errno || v > 1000000000)
		return err_set(e, 0, "is too large");
	*(unsigned *)field = v;
	return 0;
}

int opt_positive(void *field, const char *value, struct err *e)
{
	unsigned v;

	if (opt_number(&v, value, e) < 0)
		return -1;
	if (!v)
		return err_set(e, 0, "must be at least 1");
	*(unsigned *)field = v;
	return 0;
}

static int signal_number(const char *name)
{
	unsigned n;

	if (opt_number(&n, name, NULL) == 0)
		return n <= (unsigned)SIGRTMAX ? (int)n : -1;
	if (!strncasecmp(name, "SIG", 3))
		name += 3;
	if (!strncasecmp(name, "RTMIN+", 6) && opt_number(&n, name + 6, NULL) == 0)
		return n <= (unsigned)(SIGRTMAX - SIGRTMIN) ? SIGRTMIN + (int)n : -1;
	for (int s = 1; s < NSIG; s++) {
		const char *abbreviation = sigabbrev_np(s);

		if (abbreviation && !strcasecmp(name, abbreviation))
			return s;
	}
	return -1;
}

int opt_signal(void *field, const char *value, struct err *e)
{
	int s = signal_number(value);

	if (s <= 0)
		return err_set(e, 0, "is not a signal");
	/* The two below SIGRTMIN are the C library's own. */
	if (s == SIGKILL || s == SIGSTOP || s == SIGCONT || s == SIGCHLD ||
		(s >= 32 && s < SIGRTMIN))
		return err_set(e, 0, "is a signal that cannot be used for this");
	*(int *)field = s;
	return 0;
}

static bool may_lack_argument(const struct opt *row)
{
	return row->argument && row->argument[0] == '[';
}

/* ---- help ---- */

static void print_row(const struct opt *row)
{
	const char *line = row->help;
	char letter[4] = "   ";
	int width;

	if (row->letter)
		snprintf(letter, sizeof(letter), "-%c,", row->letter);
	width = printf("  %s --%s%s%s", letter, row->name,
		row->argument && !may_lack_argument(row) ? "=" : "",
		row->argument ? row->argument : "");
	for (;;) {
		size_t n = strcspn(line, "\n");

		if (width > HELP_COLUMN - 2) {
			putchar('\n');
			width = 0;
		}
		printf("%*s%.*s\n", HELP_COLUMN - width, "", (int)n, line);
		if (!line[n])
			break;
		line += n + 1;
		width = 0;
	}
}

static const struct opt help_rows[] = {
	{'h', "help", NULL, "print this help", NULL, 0},
	{0, "version", NULL, "print the version", NULL, 0},
	{0},
};

static void print_help(const struct opts *o)
{
	printf("Usage: %s [OPTION]...%s%s\n%s\n", o->tool, *o->operands ? " " : "", o->operands,
		o->about);
	for (const struct opt_group *g = o->groups; g->rows; g++) {
		printf("\n%s:\n", g->title);
		for (const struct opt *row = g->rows; row->name; row++)
			print_row(row);
	}
	putchar('\n');
	for (const struct opt *row = help_rows; row->name; row++)
		print_row(row);
}

/* Status to exit with after something was printed on stdout. */
static int status_of_output(const struct opts *o)
{
	if (fflush(stdout) == 0)
		return 0;
	fprintf(stderr, "%s: cannot write to standard output: %s\n", o->tool, strerror(errno));
	return o->usage_status;
}

int opts_misused(const struct opts *o, const char *what, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", o->tool);
	va_start(ap, what);
	vfprintf(stderr, what, ap);
	va_end(ap);
	fprintf(stderr, "\nTry '%s --help'.\n", o->tool);
	return o->usage_status;
}

/* ---- parsing ---- */

static const struct opt *find_row(
	const struct opts *o, const char *name, size_t length, char letter, void **fields)
{
	for (const struct opt_group *g = o->groups; g->rows; g++) {
		for (const struct opt *row = g->rows; row->name; row++) {
			if (name ? strlen(row->name) == length &&
						!memcmp(row->name, name, length)
				 : row->letter == letter) {
				*fields = g->fields;
				return row;
			}
		}
	}
	return NULL;
}

static int apply_value(
	const struct opts *o, const struct opt *row, void *fields, const char *value)
{
	const char *name = row->argument ? row->argument : "";
	int length;
	struct err e = ERR_INIT;

	name += strspn(name, "[=");
	length = strcspn(name, "]");
	if (row->set((char *)fields + row->field, value, &e) < 0)
		return opts_misused(
			o, "the %.*s '%s' of --%s %s", length, name, value, row->name, e.msg);
	return -1;
}

/* The option that starts with "--" at argv[*i]; *i is left at its last word. */
static int parse_long(const struct opts *o, char *argv[], int *i)
{
	const char *name = argv[*i] + 2, *value = NULL;
	size_t length = strcspn(name, "=");
	const struct opt *row;
	void *fields;

	if (!strcmp(name, "help")) {
		print_help(o);
		return status_of_output(o);
	}
	if (!strcmp(name, "version")) {
		printf("%s (trecr) %s\n", o->tool, TRECR_VERSION);
		return status_of_output(o);
	}
	row = find_row(o, name, length, 0, &fields);
	if (!row)
		return opts_misused(o, "unknown option --%.*s", (int)length, name);
	if (name[length])
		value = name + length + 1;
	if (value && !row->argument)
		return opts_misused(o, "option --%s takes no argument", row->name);
	if (!value && may_lack_argument(row))
		value = "";
	if (!value && row->argument && !(value = argv[++*i]))
		return opts_misused(o, "option --%s needs an argument", row->name);
	return apply_value(o, row, fields, value);
}

/* The word of one or more options behind one "-" at argv[*i]. */
static int parse_letters(const struct opts *o, char *argv[], int *i)
{
	for (const char *p = argv[*i] + 1; *p; p++) {
		const char *value = NULL;
		const struct opt *row;
		void *fields;
		int status;

		if (*p == 'h') {
			print_help(o);
			return status_of_output(o);
		}
		row = find_row(o, NULL, 0, *p, &fields);
		if (!row)
			return opts_misused(o, "unknown option -%c", *p);
		if (row->argument && !(value = p[1] ? p + 1 : argv[++*i]))
			return opts_misused(o, "option -%c needs an argument", *p);
		status = apply_value(o, row, fields, value);
		if (status >= 0 || value)
			return status;
	}
	return -1;
}

int opts_parse(const struct opts *o, int argc, char *argv[], struct operands *left)
{
	int i, count = 0;

	/* Operands are moved to the front of argv[1..]: never past where we read. */
	for (i = 1; i < argc; i++) {
		char *word = argv[i];
		int status = -1;

		if (!strcmp(word, "--")) {
			i++;
			break;
		}
		if (word[0] == '-' && word[1] == '-')
			status = parse_long(o, argv, &i);
		else if (word[0] == '-' && word[1])
			status = parse_letters(o, argv, &i);
		else if (o->stop_at_operand)
			break;
		else
			argv[++count] = word;
		if (status >= 0)
			return status;
	}
	while (i < argc)
		argv[++count] = argv[i++];
	if (argc > 0)
		argv[count + 1] = NULL;
	left->v = argv + 1;
	left->count = count;
	return -1;
}
