/*
 * notices.c - a list behind a lock; each notice is in it once.
 */
#include "lib/notices.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "lib/util.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct buf lines; /* char * */

static bool is_known(const char *line)
{
	for (size_t i = 0; i < buf_count(&lines, char *); i++)
		if (!strcmp(*buf_at(&lines, char *, i), line))
			return true;
	return false;
}

void notice_add(const char *fmt, ...)
{
	char *line;
	va_list ap;

	va_start(ap, fmt);
	line = xvasprintf(fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&mutex);
	if (is_known(line))
		free(line);
	else
		buf_push(&lines, char *, &line);
	pthread_mutex_unlock(&mutex);
}

void notice_printf(void (*notice)(const char *line), const char *fmt, ...)
{
	char *line;
	va_list ap;

	va_start(ap, fmt);
	line = xvasprintf(fmt, ap);
	va_end(ap);
	notice(line);
	free(line);
}

void notices_take(void (*tell)(void *arg, const char *line), void *arg)
{
	struct buf taken;

	pthread_mutex_lock(&mutex);
	taken = lines;
	memset(&lines, 0, sizeof(lines));
	pthread_mutex_unlock(&mutex);
	for (size_t i = 0; i < buf_count(&taken, char *); i++) {
		char *line = *buf_at(&taken, char *, i);

		if (tell)
			tell(arg, line);
		free(line);
	}
	buf_free(&taken);
}

void notices_clear(void)
{
	notices_take(NULL, NULL);
}
