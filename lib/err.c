/*
 * err.c - filling and prefixing errors, and the end of the program where a BUG_ON() holds.
 */
#include "lib/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int err_vset(struct err *e, int code, const char *fmt, va_list ap)
{
	size_t used;

	if (!e)
		return -1;
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	e->code = code;
	e->remedy = ERR_FINAL;
	used = strlen(e->msg);
	if (code)
		snprintf(e->msg + used, sizeof(e->msg) - used, ": %s", strerror(code));
	return -1;
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_vset(e, code, fmt, ap);
	va_end(ap);
	return -1;
}

int err_with(struct err *e, enum err_remedy remedy, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return -1;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	e->code = 0;
	e->remedy = remedy;
	return -1;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
	char rest[sizeof(e->msg)];
	va_list ap;
	size_t used;

	if (!e)
		return -1;
	memcpy(rest, e->msg, sizeof(rest));
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	used = strlen(e->msg);
	snprintf(e->msg + used, sizeof(e->msg) - used, ": %s", rest);
	return -1;
}

int err_append(struct err *e, const char *fmt, ...)
{
	va_list ap;
	size_t used;

	if (!e)
		return -1;
	used = strlen(e->msg);
	va_start(ap, fmt);
	vsnprintf(e->msg + used, sizeof(e->msg) - used, fmt, ap);
	va_end(ap);
	return -1;
}

void err_bug(const char *file, int line)
{
	fprintf(stderr, "trecr: internal error at %s:%d\n", file, line);
	abort();
}
