/*
 * err.h - errors that say what was being done.
 *
 * Functions of lib/, ckpt/ and supervisor/ return 0 (or a count) on success and -1 on
 * failure, and on failure fill the caller's struct err once, at the place where the failure
 * was seen. Callers above pass the struct on untouched, or put the larger deed in front of
 * it with err_prefix(). Only tools/ print.
 */
#ifndef LIB_ERR_H
#define LIB_ERR_H

#include <stdarg.h>
#include <stddef.h>

struct err {
	int code;      /* errno value, 0 when no system error is behind it */
	char msg[768]; /* "what was being done: reason", no newline */
};

#define ERR_INIT                                                                               \
	{                                                                                      \
		0, ""                                                                          \
	}

/* Fill @e with the formatted text; ": " and strerror(code) follow when @code is not 0.
 * @e may be NULL (the caller does not want the text). Always returns -1. */
int err_set(struct err *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int err_vset(struct err *e, int code, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

/* The same without strerror(code): for a code that is a caller's to act upon. EAGAIN: it may be
 * otherwise in a moment; EEXIST: an id is taken. */
int err_with(struct err *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Put the formatted text and ": " in front of what @e says. Always returns -1. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put the formatted text behind what @e says. Always returns -1. */
int err_append(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What cannot happen. Prints the place and aborts, in release builds too. */
#define BUG() err_bug(__FILE__, __LINE__)
#define BUG_ON(cond)                                                                           \
	do {                                                                                   \
		if (cond)                                                                      \
			BUG();                                                                 \
	} while (0)
void err_bug(const char *file, int line) __attribute__((noreturn));

#endif
