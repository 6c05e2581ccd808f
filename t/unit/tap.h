/*
 * tap.h - the Test Anything Protocol, as prove(1) reads it.
 */
#ifndef T_UNIT_TAP_H
#define T_UNIT_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int tap_count, tap_failed;

/* Why a test failed: on standard error, which prove passes on. */
__attribute__((format(printf, 1, 2), unused)) static void diag(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "# ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
}

/* One test. Returns @good. */
__attribute__((format(printf, 2, 3), unused)) static bool ok(bool good, const char *fmt, ...)
{
	char name[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	printf("%sok %d - %s\n", good ? "" : "not ", ++tap_count, name);
	fflush(stdout);
	if (!good)
		diag("failed: %s", name);
	tap_failed += !good;
	return good;
}

/* That the message @got contains @want. */
__attribute__((unused)) static bool says(const char *got, const char *want, const char *name)
{
	bool good = ok(strstr(got, want) != NULL, "%s", name);

	if (!good)
		diag("got '%s', wanted '%s'", got, want);
	return good;
}

/* The plan, and the exit status of the program. */
__attribute__((unused)) static int done_testing(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}

#endif
