/*
 * text.h - lines and tables of text that may come from an image: whatever a terminal would
 * take for more than text is shown as \xNN, and a backslash as two.
 */
#ifndef TOOLS_INSPECT_TEXT_H
#define TOOLS_INSPECT_TEXT_H

#include <stdint.h>

#include "lib/util.h"

/* Append the formatted text, escaped as a whole, and a newline. */
void text_line(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What is in @b as a string: "" when nothing is. Valid until @b changes. */
const char *text_of(struct buf *b);

/* "4096 bytes" is "4.0 KiB"; a time of the wall clock as local time. */
#define TEXT_SIZE 32
const char *text_bytes(uint64_t bytes, char out[TEXT_SIZE]);
const char *text_time(uint64_t realtime_ns, char out[TEXT_SIZE]);

/* Bytes as hexadecimal digits; @out has room for 2 * @size + 1. */
const char *text_hex(const uint8_t *bytes, size_t size, char *out);

/*
 * Cells in rows and columns, as wide as they need be.
 *
 *	struct table t = {.columns = "rl"};
 *	table_cell(&t, "PID");
 *	table_cell(&t, "NAME");
 *	...
 *	table_end(&t, out);
 */
struct table {
	const char *columns; /* one letter each: l(eft) or r(ight) */
	struct buf cells;    /* char *, row by row */
};

/* The next cell, its text escaped. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Append the rows to @out, each indented by two, and free the table. */
void table_end(struct table *t, struct buf *out);

#endif
