#include "supervisor/start/supervisor_messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void supervisor_say(const struct supervisor *s, const char *fmt, ...)
{
	cleanup_free char *line = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&line, fmt, ap) < 0)
		line = NULL;
	va_end(ap);
	if (line)
		fprintf(stderr, "%s: %s\n", s->tool, line);
}

void supervisor_say_once(void *supervisor, const char *line)
{
	struct supervisor *s = supervisor;
	char *copy;

	for (size_t i = 0; i < buf_count(&s->told, char *); i++)
		if (!strcmp(*buf_at(&s->told, char *, i), line))
			return;
	copy = xstrdup(line);
	buf_push(&s->told, char *, &copy);
	supervisor_say(s, "%s", line);
}
