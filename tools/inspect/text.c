/*
 * text.c - escapes, lines, and tables whose columns are as wide as need be.
 */
#include "tools/inspect/text.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

/* Length of the UTF-8 character at @p that a terminal shows as it is; 0: it does not. U+0080
 * to U+009F are control characters, too. */
static size_t plain_length(const uint8_t *p)
{
	static const struct {
		uint8_t mask, lead;
		uint32_t least;
	} forms[] = {{0x80, 0x00, 0x20}, {0xe0, 0xc0, 0xa0}, {0xf0, 0xe0, 0x800},
		{0xf8, 0xf0, 0x10000}};

	for (size_t n = 0; n < ARRAY_SIZE(forms); n++) {
		uint32_t c = *p & (uint8_t)~forms[n].mask;

		if ((*p & forms[n].mask) != forms[n].lead)
			continue;
		for (size_t i = 1; i <= n; i++) {
			if ((p[i] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (p[i] & 0x3f);
		}
		return c >= forms[n].least && c != 0x7f && c <= 0x10ffff ? n + 1 : 0;
	}
	return 0;
}

/* Append @s, escaped. */
static void text_escape(struct buf *out, const char *s)
{
	const uint8_t *p = (const uint8_t *)s;

	while (*p) {
		size_t n = plain_length(p);

		if (*p == '\\')
			buf_add(out, "\\\\", 2);
		else if (n)
			buf_add(out, p, n);
		else
			buf_printf(out, "\\x%02x", *p);
		p += n ? n : 1;
	}
}

static void escape_formatted(struct buf *out, const char *fmt, va_list ap)
{
	cleanup_free char *text = NULL;

	/* It fails for more than two gigabytes, too, which a damaged image may have. */
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	text_escape(out, text ? text : "?");
}

void text_line(struct buf *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	escape_formatted(out, fmt, ap);
	va_end(ap);
	buf_add(out, "\n", 1);
}

const char *text_of(struct buf *b)
{
	buf_grow(b, 1);
	b->len--;
	return b->data;
}

const char *text_bytes(uint64_t bytes, char out[TEXT_SIZE])
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = bytes;
	size_t u = 0;

	for (; v >= 1024 && u < ARRAY_SIZE(units) - 1; u++)
		v /= 1024;
	snprintf(out, TEXT_SIZE, u ? "%.1f %s" : "%.0f %s", v, units[u]);
	return out;
}

const char *text_time(uint64_t realtime_ns, char out[TEXT_SIZE])
{
	time_t seconds = realtime_ns / 1000000000;
	struct tm tm = {0};

	/* Fails for years that do not fit, which nanoseconds in 64 bits do not reach. */
	localtime_r(&seconds, &tm);
	strftime(out, TEXT_SIZE, "%Y-%m-%d %H:%M:%S", &tm);
	return out;
}

const char *text_hex(const uint8_t *bytes, size_t size, char *out)
{
	*out = 0;
	for (size_t i = 0; i < size; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return out;
}

void table_cell(struct table *t, const char *fmt, ...)
{
	struct buf cell = {0};
	va_list ap;
	char *text;

	va_start(ap, fmt);
	escape_formatted(&cell, fmt, ap);
	va_end(ap);
	text = (char *)text_of(&cell);
	buf_push(&t->cells, char *, &text);
}

/* How many columns of a terminal @s takes, wide characters aside. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

static void add_spaces(struct buf *out, size_t n)
{
	if (n)
		memset(buf_grow(out, n), ' ', n);
}

static void add_row(const struct table *t, char **row, const size_t *widths, struct buf *out)
{
	size_t columns = strlen(t->columns), end;

	for (size_t c = 0; c < columns; c++) {
		size_t pad = widths[c] - width_of(row[c]);

		add_spaces(out, 2 + (t->columns[c] == 'r' ? pad : 0));
		buf_add(out, row[c], strlen(row[c]));
		if (t->columns[c] != 'r')
			add_spaces(out, pad);
	}
	for (end = out->len; end && ((char *)out->data)[end - 1] == ' '; end--)
		;
	out->len = end;
	buf_add(out, "\n", 1);
}

void table_end(struct table *t, struct buf *out)
{
	size_t columns = strlen(t->columns), count = buf_count(&t->cells, char *);
	cleanup_free size_t *widths = xcalloc(columns, sizeof(*widths));
	char **cells = t->cells.data;

	BUG_ON(count % columns);
	for (size_t i = 0; i < count; i++) {
		size_t w = width_of(cells[i]);

		if (w > widths[i % columns])
			widths[i % columns] = w;
	}
	for (size_t i = 0; i < count; i += columns)
		add_row(t, cells + i, widths, out);
	for (size_t i = 0; i < count; i++)
		free(cells[i]);
	buf_free(&t->cells);
}
