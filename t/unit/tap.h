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

/* One test. Returns @good. */
__attribute__((format(printf, 2, 3), unused)) static bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", good ? "" : "not ", ++tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	tap_failed += !good;
	return good;
}

/* That the message @got contains @want. */
__attribute__((unused)) static bool says(const char *got, const char *want, const char *name)
{
	bool good = ok(strstr(got, want) != NULL, "%s", name);

	if (!good)
		printf("# got:  %s\n# want: %s\n", got, want);
	return good;
}

/* The plan, and the exit status of the program. */
__attribute__((unused)) static int done_testing(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}

#endif
