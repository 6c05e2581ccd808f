/*
 * supervisor_messages.h - what a supervisor says on standard error, where nobody waits for an answer: all else is a
 * struct err, which a tool prints.
 */
#ifndef SUPERVISOR_START_SUPERVISOR_MESSAGES_H
#define SUPERVISOR_START_SUPERVISOR_MESSAGES_H

#include "supervisor/start/supervisor.h"

/* A line, behind the name of the tool. */
void supervisor_say(const struct supervisor *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The same of what would come again with every checkpoint: once. @supervisor is a struct supervisor. One thread at a
 * time. */
void supervisor_say_once(void *supervisor, const char *line);

#endif
