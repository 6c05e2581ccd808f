/*
 * err.h - errors that say what was being done.
 *
 * Functions of lib/, ckpt/ and supervisor/ return 0 (or a count) on success and -1 on
 * failure, and on failure fill the caller's struct err once, at the place where the failure
 * was seen. Callers above pass the struct on untouched, or put what they were doing in front of
 * it with err_prefix(). Only tools/ print, and a supervisor what nobody
 * waits for (supervisor/start/supervisor_messages.h). A function without a struct err that can fail is little
 * more than a system call, and fails like one: -1 (or NULL) and errno; its caller says what for.
 */
#ifndef LIB_ERR_H
#define LIB_ERR_H

#include <stdarg.h>
#include <stddef.h>

/* What a caller can do about an error, if anything. The function that
 * sees the failure decides: an errno value alone has many causes. */
enum err_remedy {
	ERR_FINAL,     /* nothing */
	ERR_TRY_AGAIN, /* it may be otherwise in a moment */
	ERR_WAIT,      /* it passes with time: a port that the kernel keeps for a minute */
	ERR_ID_TAKEN,  /* an id is in use here, and would be free in namespaces of its own */
	ERR_DAMAGED,   /* an image cannot be read: an older checkpoint may be whole */
};

struct err {
	int code; /* errno value, for reports, and for a caller that knows what call failed; 0
		   * when no system error is behind it */
	enum err_remedy remedy;
	char msg[768]; /* "what was being done: reason", no newline */
};

#define ERR_INIT                                                                               \
	{                                                                                      \
		0, ERR_FINAL, ""                                                               \
	}

/* Fill @e, whose remedy is ERR_FINAL then, with the formatted text; ": " and strerror(code)
 * follow when @code is not 0.
 * @e may be NULL (the caller does not want the text). Always returns -1. */
int err_set(struct err *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int err_vset(struct err *e, int code, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

/* The same of an error that a caller can do something about; no system error is behind it. */
int err_with(struct err *e, enum err_remedy remedy, const char *fmt, ...)
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
