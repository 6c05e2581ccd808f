/*
 * checkpoint_request.c - a request for a checkpoint as words "NAME=VALUE", a row for each name.
 */
#include "supervisor/control/checkpoint_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "supervisor/start/supervisor_options.h"

static int read_number(uint64_t *number, const char *value, uint64_t max)
{
	char *end;

	errno = 0;
	*number = strtoull(value, &end, 10);
	return errno || end == value || *end || *value == '-' || *number > max ? -1 : 0;
}

/* ---- kinds of values ---- */

static int read_flag(void *field, const char *value)
{
	uint64_t n;

	if (read_number(&n, value, 1))
		return -1;
	*(bool *)field = n;
	return 0;
}

static int read_unsigned(void *field, const char *value)
{
	uint64_t n;

	if (read_number(&n, value, UINT32_MAX))
		return -1;
	*(unsigned *)field = n;
	return 0;
}

static int read_rate(void *field, const char *value)
{
	return read_number(field, value, UINT64_MAX);
}

/* Milliseconds from now. */
static int read_timeout(void *field, const char *value)
{
	uint64_t ms;

	if (read_number(&ms, value, UINT32_MAX))
		return -1;
	*(uint64_t *)field = ms ? clock_ns(CLOCK_MONOTONIC) + ms * 1000000 : 0;
	return 0;
}

static int read_duration(void *field, const char *value)
{
	uint64_t ms;

	if (read_number(&ms, value, UINT32_MAX))
		return -1;
	*(uint64_t *)field = ms * 1000000;
	return 0;
}

static int read_try(void *whole, const char *value)
{
	struct checkpoint_request *request = whole;
	uint64_t n;

	if (read_number(&n, value, 2))
		return -1;
	request->no_try = !n;
	request->try_restart = n == 1;
	request->verify = n == 2;
	return 0;
}

static int read_tcp(void *whole, const char *value)
{
	struct checkpoint_request *request = whole;

	request->has_tcp = true;
	return opt_tcp(&request->tcp, value, NULL);
}

static int read_compress(void *whole, const char *value)
{
	struct checkpoint_request *request = whole;

	request->has_compress = true;
	return opt_compress(&request->compress, value, NULL);
}

#define FIELD(name) offsetof(struct checkpoint_request, name)

/* Of try, tcp and compress the field is the whole request. */
static const struct word {
	const char *name;
	int (*read)(void *field, const char *value);
	size_t field;
} words_known[] = {
	{"stop", read_flag, FIELD(stop)},
	{"timeout_ms", read_timeout, FIELD(deadline_ns)},
	{"foresee", read_flag, FIELD(foresee)},
	{"drain_ms", read_duration, FIELD(drain_ns)},
	{"try", read_try, 0},
	{"tcp", read_tcp, 0},
	{"compress", read_compress, 0},
	{"threads", read_unsigned, FIELD(threads)},
	{"rate", read_rate, FIELD(rate)},
	{"fork", read_flag, FIELD(fork)},
};

static int read_word(struct checkpoint_request *request, const char *word)
{
	const char *equals = strchr(word, '=');

	for (size_t i = 0; equals && i < ARRAY_SIZE(words_known); i++)
		if (strlen(words_known[i].name) == (size_t)(equals - word) &&
			!strncmp(word, words_known[i].name, equals - word))
			return words_known[i].read(
				(char *)request + words_known[i].field, equals + 1);
	return -1;
}

int checkpoint_request_parse(struct checkpoint_request *request, char *words)
{
	char *more = NULL;

	for (char *word = strtok_r(words, " ", &more); word; word = strtok_r(NULL, " ", &more))
		if (read_word(request, word))
			return -1;
	return 0;
}

/* Rounded up: not before the deadline. */
static uint64_t ms_until(uint64_t deadline_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!deadline_ns)
		return 0;
	return deadline_ns > now ? (deadline_ns - now + 999999) / 1000000 : 1;
}

/* What is not asked for is left out: supervisors of earlier releases do not know each word. */
char *checkpoint_request_text(const struct checkpoint_request *request)
{
	char room[PACK_CHOICE_TEXT];
	struct buf text = {0};

	buf_printf(&text, "checkpoint stop=%d timeout_ms=%" PRIu64 " drain_ms=%" PRIu64,
		request->stop, ms_until(request->deadline_ns), request->drain_ns / 1000000);
	if (request->foresee)
		buf_printf(&text, " foresee=1");
	if (request->no_try || request->try_restart || request->verify)
		buf_printf(&text, " try=%d", request->no_try ? 0 : request->verify ? 2 : 1);
	if (request->has_tcp)
		buf_printf(&text, " tcp=%s", opt_tcp_text(request->tcp));
	if (request->has_compress)
		buf_printf(&text, " compress=%s", pack_choice_text(&request->compress, room));
	if (request->fork)
		buf_printf(&text, " fork=1");
	if (request->threads)
		buf_printf(&text, " threads=%u", request->threads);
	if (request->rate)
		buf_printf(&text, " rate=%" PRIu64, request->rate);
	buf_add(&text, "", 1);
	return (char *)text.data;
}

const char *checkpoint_deadline_option(const struct checkpoint_request *request)
{
	return request->foresee ? "--deadline" : "--timeout";
}

void checkpoint_request_complete(
	struct checkpoint_request *request, const struct supervisor_options *options)
{
	request->fork |= options->fork;
	/* With `stop` one is tried in any case. The program stands still for a trial. */
	request->try_restart &= !request->stop;
	request->fork &= !request->try_restart;
	if (!request->has_tcp)
		request->tcp = options->tcp;
	if (!request->has_compress)
		request->compress = options->compress;
	if (!request->threads)
		request->threads = options->threads;
	if (!request->rate)
		request->rate = options->rate;
	if (!request->drain_ns)
		request->drain_ns = options->drain_s * 1000000000ull;
}
