/* Text: the names of its variables, and of kernels that allocate memory. */
#include "lower/cuda/symbols.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static const char *skip_space(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* ".align 4 .attribute(.managed) .v4 .b8 " */
static const char *skip_properties(const char *p)
{
	for (p = skip_space(p); *p == '.'; p = skip_space(p)) {
		int align = !strncmp(p, ".align", 6);

		while (is_name(*++p))
			;
		if (align)
			p = skip_space(p) + strspn(skip_space(p), "0123456789");
		if (*skip_space(p) == '(')
			p += strcspn(p, ")") + 1;
	}
	return p;
}

/* "[4][2] = {{1, 2}, {3, 4}}" */
static const char *skip_value(const char *p)
{
	int depth = 0;

	for (p = skip_space(p); *p && (depth || !strchr(",;(){", *p)); p++) {
		const char *value = skip_space(p + 1);

		if (*p == '=' && *value == '{')
			p = value;
		depth += (*p == '{') - (*p == '}');
	}
	return p;
}

/* Behind ".global": "PROPERTIES name[4] = ..., other;" */
static int declared_variables(const struct names_visitor *v, const char *p)
{
	int r = 0;

	do {
		const char *start = skip_properties(p);
		char *name;

		for (p = start; is_name(*p); p++)
			;
		if (p == start)
			return 0;
		name = strndup(start, p - start);
		if (!name)
			return -1;
		r = v->variable(name, 0, 0, v->argument);
		free(name);
		p = skip_value(p);
	} while (!r && *p++ == ',');
	return r;
}

/* Variables are declared after a space or at the start of a line; in instructions something
 * goes before the point. */
static int find_variables(const struct names_visitor *v, const char *text)
{
	static const char *const words[] = {".global", ".const"};
	int r = 0;

	for (const char *p = text; *p && !r; p++) {
		if (*p != '.' || (p > text && !isspace((unsigned char)p[-1])))
			continue;
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !r; i++) {
			size_t n = strlen(words[i]);

			if (!strncmp(p, words[i], n) && isspace((unsigned char)p[n]))
				r = declared_variables(v, p + n);
		}
	}
	return r;
}

/* ---- malloc ---- */

/* Where @word stands alone from @p on, NULL: nowhere. */
static const char *find_word(const char *p, const char *word)
{
	size_t n = strlen(word);

	for (; (p = strstr(p, word)); p += n)
		if (!is_name(p[-1]) && !is_name(p[n]))
			return p;
	return NULL;
}

/* The last @word before @end. */
static const char *last_before(const char *text, const char *end, const char *word)
{
	const char *last = NULL;

	for (const char *p = text; (p = find_word(p, word)) && p < end; p++)
		last = p;
	return last;
}

/* The kernel that @call is in: "" when it is in a function, which any may call. */
static char *calling_kernel(const char *text, const char *call)
{
	const char *entry = last_before(text + 1, call, ".entry");
	const char *function = last_before(text + 1, call, ".func");
	const char *name;
	size_t n = 0;

	if (!entry || function > entry)
		return strdup("");
	name = skip_space(entry + strlen(".entry"));
	while (is_name(name[n]))
		n++;
	return strndup(name, n);
}

/* "call (result), malloc, (size);", but not its declaration. */
static int find_allocating(const struct names_visitor *v, const char *text)
{
	int r = 0;

	for (const char *p = text + !!*text; !r && (p = find_word(p, "malloc")); p++) {
		char *name;

		if (*skip_space(p + strlen("malloc")) != ',')
			continue;
		name = calling_kernel(text, p);
		r = name ? v->allocates(name, v->argument) : -1;
		free(name);
	}
	return r;
}

int names_in_text(const struct names_visitor *v, const char *text)
{
	int r = find_variables(v, text);

	return r || !v->allocates ? r : find_allocating(v, text);
}
