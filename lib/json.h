/*
 * json.h - a writer for JSON (RFC 8259).
 *
 *	struct json j = {.out = &buf};
 *	json_object(&j, NULL);
 *	json_text(&j, "path", path);
 *	json_array(&j, "sizes");
 *	json_number(&j, NULL, 42);
 *	json_end(&j);
 *	json_end(&j);
 *
 * Inside an object each value has a key, inside an array and outside of all the key is NULL.
 * Text that is no valid UTF-8 has U+FFFD for each byte that does not belong. Two spaces a
 * level, one value a line, a newline after the outermost.
 */
#ifndef LIB_JSON_H
#define LIB_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

#define JSON_DEPTH 16

struct json {
	struct buf *out;
	unsigned depth;
	struct {
		char close;
		bool used; /* holds a value already */
	} level[JSON_DEPTH];
};

void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j); /* of the innermost object or array */

void json_text(struct json *j, const char *key, const char *text); /* NULL: null */
void json_number(struct json *j, const char *key, uint64_t v);
void json_integer(struct json *j, const char *key, int64_t v);
void json_real(struct json *j, const char *key, double v); /* not finite: null */
void json_bool(struct json *j, const char *key, bool v);
void json_null(struct json *j, const char *key);

#endif
