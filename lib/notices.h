/*
 * notices.h - what the user should know of a checkpoint or restart that has succeeded.
 *
 * A notice is added where the matter is seen, from any thread, and told by the tool that has
 * ordered it: to a client, or on standard error.
 */
#ifndef LIB_NOTICES_H
#define LIB_NOTICES_H

/* One line, without newline. What has been added already is not added again. */
void notice_add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Tell @notice at once. */
void notice_printf(void (*notice)(const char *line), const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Forget all: of an attempt that has failed. */
void notices_clear(void);

/* Call @tell with each, in their order, and forget them. */
void notices_take(void (*tell)(void *arg, const char *line), void *arg);

#endif
