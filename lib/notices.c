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
static struct buf lines;  /* char * */
static struct buf hashes; /* uint64_t: of each line, as there may be thousands */

/* FNV-1a. */
static uint64_t hash_of(const char *line)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *line; line++)
		h = (h ^ (unsigned char)*line) * 0x100000001b3;
	return h;
}

static bool is_known(const char *line, uint64_t hash)
{
	const uint64_t *known = (const uint64_t *)hashes.data;

	for (size_t i = 0; i < buf_count(&hashes, uint64_t); i++)
		if (known[i] == hash && !strcmp(*buf_at(&lines, char *, i), line))
			return true;
	return false;
}

void notice_add(const char *fmt, ...)
{
	uint64_t hash;
	char *line;
	va_list ap;

	va_start(ap, fmt);
	line = xvasprintf(fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&mutex);
	hash = hash_of(line);
	if (is_known(line, hash)) {
		free(line);
	} else {
		buf_push(&lines, char *, &line);
		buf_push(&hashes, uint64_t, &hash);
	}
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
	buf_free(&hashes);
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
