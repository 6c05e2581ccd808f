/*
 * notice_once.c - the supervisor has a list of what it has said.
 */
#include "supervisor/start/notice_once.h"

#include <stdio.h>
#include <string.h>

void notice_once(void *supervisor, const char *line)
{
	struct supervisor *s = supervisor;
	char *copy;

	for (size_t i = 0; i < buf_count(&s->told, char *); i++)
		if (!strcmp(*buf_at(&s->told, char *, i), line))
			return;
	copy = xstrdup(line);
	buf_push(&s->told, char *, &copy);
	fprintf(stderr, "%s: %s\n", s->tool, line);
}
