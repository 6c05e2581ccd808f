/*
 * Functions with large counts (MPI_Send_c) for a library that has only the others: they call these where all numbers
 * fit. Behind what `gen adapter` has printed, which has NAME as adapted_NAME. The file that includes it defines
 *
 *	LENGTH_MEMBERS(comm)	how many ranks are on this side of the communicator
 *	TOO_LARGE(comm)		returns, with an error of the communicator, as a number is too large
 *	AT_ROOT(root, comm, n)	n at the root, else 0: only there is an array of that many
 *
 * and, where it wants the names only, NARROWED(NAME, OWN, PLAIN), OWN being the library's name of PLAIN.
 */
#include "stubs/gen/abi.h"

#include <string.h>

#include "lib/util.h"

#define SUFFIX "_c"

enum way {
	SAME,
	NUMBER,
	PLACE, /* of one */
	ARRAY,
};

struct site {
	const struct api *api;
	const struct abi *abi;
	const struct api_call *large, *plain;
	FILE *out;
};

static const struct api_call *find_call(const struct api *api, const char *name, size_t length)
{
	for (size_t i = 0; i < api->call_count; i++)
		if (!strncmp(api->calls[i].name, name, length) && !api->calls[i].name[length])
			return &api->calls[i];
	return NULL;
}

static bool is_adapted(const struct abi *abi, const char *name)
{
	return abi_find(abi, ABI_CALLS, name) || abi_list_of(abi, ABI_RENAMED, name);
}

static bool is_int(const struct api_param *p)
{
	return !strcmp(p->type->name, "int");
}

static bool is_wide(const struct api_param *p)
{
	return p->type->size == 8 && p->type->kind == API_INT;
}

static enum way way_of(const struct site *s, unsigned i)
{
	const struct api_param *p = &s->large->params[i];

	if (!is_int(&s->plain->params[i]) || !is_wide(p))
		return SAME;
	return !p->stars ? NUMBER : p->length_kind == API_ONE ? PLACE : ARRAY;
}

/* Both have the same parameters, of which some are wider. */
static bool are_alike(const struct api_call *large, const struct api_call *plain)
{
	if (large->param_count != plain->param_count || large->result || plain->result)
		return false;
	for (unsigned i = 0; i < large->param_count; i++) {
		const struct api_param *a = &large->params[i], *b = &plain->params[i];

		if (a->stars != b->stars ||
			(strcmp(a->type->name, b->type->name) &&
				(!is_wide(a) || !(is_int(b) || is_wide(b)))))
			return false;
	}
	return true;
}

static const char *named_type(const struct site *s, const char *type, bool by_value)
{
	const struct api_call *c = s->large;

	for (unsigned i = 0; i < c->param_count; i++)
		if (!strcmp(c->params[i].type->name, type) && !c->params[i].stars == by_value)
			return c->params[i].name;
	return NULL;
}

static bool has_root(const struct site *s)
{
	for (unsigned i = 0; i < s->large->param_count; i++)
		if (!strcmp(s->large->params[i].name, "root"))
			return true;
	return false;
}

static int print_length(const struct site *s, unsigned index, struct err *e)
{
	const struct api_param *p = &s->large->params[index];
	const char *comm = named_type(s, "MPI_Comm", true),
		   *buffer = api_buffer_before(s->large, index);

	if (p->length_kind == API_PARAMETER)
		fprintf(s->out, "LENGTH(%s, %s)", p->name, s->large->params[p->length].name);
	else if (p->length_kind == API_RANKS && has_root(s))
		fprintf(s->out, "AT_ROOT(root, %s, LENGTH_RANKS(%s, %s))", comm, buffer, comm);
	else if (p->length_kind == API_RANKS)
		fprintf(s->out, "LENGTH_RANKS(%s, %s)", buffer, comm);
	else if (p->length_kind == API_MEMBERS)
		fprintf(s->out, "LENGTH_MEMBERS(%s)", comm);
	else if (p->length_kind == API_SOURCES || p->length_kind == API_DESTINATIONS)
		fprintf(s->out, "LENGTH_%s(%s, %s)",
			p->length_kind == API_SOURCES ? "SOURCES" : "DESTINATIONS", buffer,
			comm);
	else
		return err_set(
			e, 0, "%s: nothing tells how many %s has", s->large->name, p->name);
	return 0;
}

static void print_parameters(const struct site *s)
{
	for (unsigned i = 0; i < s->large->param_count; i++) {
		const struct api_param *p = &s->large->params[i];
		const char *at = strstr(p->declared, p->type->name);

		fputs(i ? ", " : "", s->out);
		if (at && abi_find(s->abi, ABI_EXCHANGED, p->type->name))
			fprintf(s->out, "%.*sOUTER_%s", (int)(at - p->declared), p->declared,
				at);
		else
			fputs(p->declared, s->out);
		fprintf(s->out, " %s", p->name);
	}
}

static int print_locals(const struct site *s, struct err *e)
{
	for (unsigned i = 0; i < s->large->param_count; i++) {
		const struct api_param *p = &s->large->params[i];
		const char *n = p->name;

		switch (way_of(s, i)) {
		case NUMBER:
			fprintf(s->out, "\tint in_%s = (int)%s;\n", n, n);
			break;
		case PLACE:
			if (p->direction == API_OUT)
				fprintf(s->out, "\tint in_%s = 0;\n", n);
			else
				fprintf(s->out, "\tint in_%s = %s ? (int)*%s : 0;\n", n, n, n);
			break;
		case ARRAY:
			fprintf(s->out, "\tsize_t length_%s = ", n);
			if (print_length(s, i, e) < 0)
				return -1;
			fprintf(s->out, ";\n\tint *in_%s = ALLOC(%s, length_%s, int);\n", n, n,
				n);
			break;
		case SAME:
			break;
		}
	}
	return 0;
}

static bool has_arrays(const struct site *s)
{
	for (unsigned i = 0; i < s->large->param_count; i++)
		if (way_of(s, i) == ARRAY)
			return true;
	return false;
}

static void print_checks(const struct site *s, const char *comm)
{
	const char *before = has_arrays(s) ? "DONE " : "";

	for (unsigned i = 0; i < s->large->param_count; i++) {
		const struct api_param *p = &s->large->params[i];
		const char *n = p->name;

		switch (way_of(s, i)) {
		case NUMBER:
			fprintf(s->out, "\tif (in_%s != %s) {\n\t\t%sTOO_LARGE(%s);\n\t}\n", n,
				n, before, comm);
			break;
		case PLACE:
			if (p->direction != API_OUT)
				fprintf(s->out,
					"\tif (%s && in_%s != *%s) "
					"{\n\t\t%sTOO_LARGE(%s);\n\t}\n",
					n, n, n, before, comm);
			break;
		case ARRAY:
			fprintf(s->out,
				"\tfor (size_t i = 0; i < length_%s; i++)\n"
				"\t\tif ((in_%s[i] = (int)%s[i]) != %s[i]) {\n"
				"\t\t\t%sTOO_LARGE(%s);\n\t\t}\n",
				n, n, n, n, before, comm);
			break;
		case SAME:
			break;
		}
	}
}

static void print_call(const struct site *s)
{
	fprintf(s->out, "\tgave = adapted_%s(", s->plain->name);
	for (unsigned i = 0; i < s->large->param_count; i++) {
		const struct api_param *p = &s->large->params[i];
		enum way way = way_of(s, i);

		fputs(i ? ", " : "", s->out);
		if (way == PLACE)
			fprintf(s->out, "%s ? &in_%s : NULL", p->name, p->name);
		else
			fprintf(s->out, "%s%s",
				way == NUMBER || way == ARRAY ? "in_"
				: is_wide(p) && p->stars      ? "(void *)"
							      : "",
				p->name);
	}
	fputs(");\n", s->out);
	for (unsigned i = 0; i < s->large->param_count; i++)
		if (way_of(s, i) == PLACE)
			fprintf(s->out, "\tif (%s && !gave)\n\t\t*%s = in_%s;\n",
				s->large->params[i].name, s->large->params[i].name,
				s->large->params[i].name);
}

static int print_narrowed(const struct site *s, struct err *e)
{
	const char *comm = named_type(s, "MPI_Comm", true);
	const char *request = named_type(s, "MPI_Request", false);
	bool arrays = has_arrays(s);

	fprintf(s->out, "static int narrowed_%s(", s->large->name);
	print_parameters(s);
	fputs(")\n{\n", s->out);
	if (arrays)
		fputs(request ? "\tWITH_KEPT_MEMORY\n" : "\tWITH_MEMORY\n", s->out);
	if (print_locals(s, e) < 0)
		return -1;
	fprintf(s->out, "\tint gave;\n\n%s", arrays ? "\tNO_MEMORY_FAILS\n" : "");
	print_checks(s, comm ? comm : "WORLD");
	print_call(s);
	if (arrays && request)
		fprintf(s->out, "\tKEEP_MEMORY(%s)\n", request);
	else if (arrays)
		fputs("\tDONE\n", s->out);
	fputs("\treturn gave;\n}\n\n", s->out);
	return 0;
}

/* The plain function of @large; NULL: there is none that it could call. */
static const struct api_call *plain_of(
	const struct api *api, const struct abi *abi, const struct api_call *large)
{
	size_t length = strlen(large->name);
	const struct api_call *plain;

	if (length < strlen(SUFFIX) || strcmp(large->name + length - strlen(SUFFIX), SUFFIX))
		return NULL;
	plain = find_call(api, large->name, length - strlen(SUFFIX));
	return plain && is_adapted(abi, plain->name) && are_alike(large, plain) ? plain : NULL;
}

int gen_narrowed(const struct api *api, const struct abi *abi, FILE *out, struct err *e)
{
	struct site s = {api, abi, NULL, NULL, out};

	fputs("#ifndef NARROWED\n", out);
	for (size_t i = 0; i < api->call_count; i++) {
		s.large = &api->calls[i];
		s.plain = plain_of(api, abi, s.large);
		if (s.plain && print_narrowed(&s, e) < 0)
			return -1;
	}
	fputs("#else\n", out);
	for (size_t i = 0; i < api->call_count; i++) {
		const struct api_call *plain = plain_of(api, abi, &api->calls[i]);
		const struct abi_list *renamed =
			plain ? abi_list_of(abi, ABI_RENAMED, plain->name) : NULL;

		if (plain)
			fprintf(out, "NARROWED(%s, %s, %s)\n", api->calls[i].name,
				renamed ? renamed->words[0] : plain->name, plain->name);
	}
	fputs("#endif\n", out);
	return 0;
}
