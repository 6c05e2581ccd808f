/*
 * json.c - indentation and commas, escapes, and the kinds of values.
 */
#include "lib/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Bytes of the valid UTF-8 sequence at @s, 0 when there is none (RFC 3629: no surrogates, no
 * overlong forms, nothing above U+10FFFF). */
static size_t utf8_length(const unsigned char *s)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	}
	return n;
}

static void add_string(struct buf *out, const char *text)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const unsigned char *p = (const unsigned char *)text;

	buf_add(out, "\"", 1);
	while (*p) {
		const char *special = strchr(plain, *p);
		size_t n = utf8_length(p);

		if (special)
			buf_printf(out, "\\%c", letters[special - plain]);
		else if (*p < 0x20 || *p == 0x7f)
			buf_printf(out, "\\u%04x", *p);
		else if (!n)
			buf_add(out, "\\ufffd", 6);
		else
			buf_add(out, p, n);
		p += n ? n : 1;
	}
	buf_add(out, "\"", 1);
}

static void new_line(struct json *j)
{
	buf_printf(j->out, "\n%*s", (int)(2 * j->depth), "");
}

/* Comma, new line and key: all that comes before a value. */
static void lead_in(struct json *j, const char *key)
{
	if (j->depth) {
		BUG_ON((j->level[j->depth - 1].close == '}') != (key != NULL));
		if (j->level[j->depth - 1].used)
			buf_add(j->out, ",", 1);
		j->level[j->depth - 1].used = true;
		new_line(j);
	}
	if (key) {
		add_string(j->out, key);
		buf_add(j->out, ": ", 2);
	}
}

static void finish_line(struct json *j)
{
	if (!j->depth)
		buf_add(j->out, "\n", 1);
}

static void open_level(struct json *j, const char *key, char open, char close)
{
	lead_in(j, key);
	BUG_ON(j->depth == JSON_DEPTH);
	buf_add(j->out, &open, 1);
	j->level[j->depth].close = close;
	j->level[j->depth].used = false;
	j->depth++;
}

void json_object(struct json *j, const char *key)
{
	open_level(j, key, '{', '}');
}

void json_array(struct json *j, const char *key)
{
	open_level(j, key, '[', ']');
}

void json_end(struct json *j)
{
	BUG_ON(!j->depth);
	j->depth--;
	if (j->level[j->depth].used)
		new_line(j);
	buf_add(j->out, &j->level[j->depth].close, 1);
	finish_line(j);
}

void json_text(struct json *j, const char *key, const char *text)
{
	if (!text) {
		json_null(j, key);
		return;
	}
	lead_in(j, key);
	add_string(j->out, text);
	finish_line(j);
}

void json_number(struct json *j, const char *key, uint64_t v)
{
	lead_in(j, key);
	buf_printf(j->out, "%" PRIu64, v);
	finish_line(j);
}

void json_integer(struct json *j, const char *key, int64_t v)
{
	lead_in(j, key);
	buf_printf(j->out, "%" PRId64, v);
	finish_line(j);
}

void json_real(struct json *j, const char *key, double v)
{
	if (!isfinite(v)) {
		json_null(j, key);
		return;
	}
	lead_in(j, key);
	/* No tool calls setlocale(3): the decimal point is a point. */
	buf_printf(j->out, "%.15g", v);
	finish_line(j);
}

void json_bool(struct json *j, const char *key, bool v)
{
	lead_in(j, key);
	buf_printf(j->out, "%s", v ? "true" : "false");
	finish_line(j);
}

void json_null(struct json *j, const char *key)
{
	lead_in(j, key);
	buf_add(j->out, "null", 4);
	finish_line(j);
}
