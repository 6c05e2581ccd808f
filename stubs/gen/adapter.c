/*
 * Functions of one ABI that call those of another, with arguments and results exchanged. Both directions are the same
 * text: what is *outer* is the caller's, what is *inner* belongs to the function that is called, and the file that
 * includes it says which of the two ABIs each is (stubs/mpi/openmpi/exchange.inc, lower/mpi/openmpi/exchange.inc):
 *
 *	CALLEE(RESULT, NAME, OWN, (TYPES))	declares what is called: NAME in the API table's ABI, OWN in the other
 *	ADAPTER(RESULT, NAME, OWN, (PARAMETERS))	begins the function that calls it, by CALL(NAME, OWN)(...)
 *	ALSO_NAMED(RESULT, NAME, OWN, (TYPES))	behind one whose names differ: later versions of the other ABI have NAME, too
 *	OUTER_type, INNER_type		types that are exchanged
 *	IN_x(value), OUT_x(value)	a value of a type, or of a class of values or addresses: exchanged on the way to
 *					the callee, and back
 *	CHANGED_type(was, now)		a handle that the callee has changed, for one that it was given
 *	WITH_MEMORY, ALLOC(given, length, type), DONE	memory for as long as the call takes
 *	WITH_KEPT_MEMORY, KEEP_MEMORY(request)	or as long as the request that it has given out
 *	LENGTH_RANKS(comm) ...		how many elements an array has
 *
 * Where the file that includes it has defined ENTRY(NAME, OWN), it is one each of those, also of what is written by
 * hand.
 */
#include "stubs/gen/abi.h"

#include <string.h>

#include "lib/util.h"

enum way {
	PLAIN,
	HANDLE,       /* by value */
	HANDLE_PLACE, /* one, behind a pointer */
	HANDLE_ARRAY,
	STATUS_PLACE,
	STATUS_ARRAY,
	POINTER,     /* an address that may mean something */
	VALUE,       /* an int of a class of constants */
	VALUE_OUT,   /* one or more that come out */
	VALUE_ARRAY, /* several that go in */
};

struct site {
	const struct api *api;
	const struct abi *abi;
	const struct api_call *call;
	FILE *out;
};

static bool is_status(const struct api_param *p)
{
	return p->type->kind == API_STRUCT;
}

static bool is_array(const struct api_param *p)
{
	return p->length_kind != API_ONE;
}

static const char *class_of(
	const struct site *s, const struct api_param *p, enum abi_list_kind kind)
{
	const struct abi_list *list = abi_find(s->abi, kind, p->name);

	return list ? list->of : NULL;
}

static enum way way_of_value(const struct site *s, const struct api_param *p)
{
	if (strcmp(p->type->name, "int") || !class_of(s, p, ABI_PARAMETERS))
		return PLAIN;
	if (!p->stars)
		return VALUE;
	return p->direction == API_IN ? VALUE_ARRAY : VALUE_OUT;
}

static enum way way_of(const struct site *s, const struct api_param *p)
{
	if (abi_find(s->abi, ABI_EXCHANGED, p->type->name)) {
		if (is_status(p))
			return is_array(p) ? STATUS_ARRAY : STATUS_PLACE;
		if (!p->stars)
			return HANDLE;
		return is_array(p) ? HANDLE_ARRAY : HANDLE_PLACE;
	}
	if (class_of(s, p, ABI_POINTERS) && (p->stars || p->type->size == 8))
		return POINTER;
	if (p->type->kind == API_VOID && p->stars == 1 && p->direction != API_ADDR)
		return POINTER;
	return way_of_value(s, p);
}

/* ---- declarations ---- */

/* @declared with the type that is exchanged prefixed. */
static void print_type(
	const struct site *s, const struct api_param *p, const char *prefix, FILE *out)
{
	const char *name = p->type->name, *at = strstr(p->declared, name);

	if (!at || !abi_find(s->abi, ABI_EXCHANGED, name))
		fputs(p->declared, out);
	else
		fprintf(out, "%.*s%s%s", (int)(at - p->declared), p->declared, prefix, at);
}

static void print_parameters(const struct site *s, const char *prefix, bool names)
{
	for (unsigned i = 0; i < s->call->param_count; i++) {
		const struct api_param *p = &s->call->params[i];

		fputs(i ? ", " : "", s->out);
		print_type(s, p, prefix, s->out);
		if (names)
			fprintf(s->out, " %s", p->name);
	}
	fputs(s->call->param_count ? "" : "void", s->out);
}

static const char *own_name(const struct site *s)
{
	const struct abi_list *renamed = abi_list_of(s->abi, ABI_RENAMED, s->call->name);

	return renamed ? renamed->words[0] : s->call->name;
}

static const char *result_of(const struct site *s)
{
	return s->call->result ? s->call->result->name : s->api->result;
}

/* ---- lengths ---- */

/* What comes out in a number that the call tells is of no more than there are handles. */
static const char *most_handles(const struct site *s)
{
	for (unsigned i = 0; i < s->call->param_count; i++)
		if (way_of(s, &s->call->params[i]) == HANDLE_ARRAY)
			return s->call->params[s->call->params[i].length].name;
	return "?";
}

static int print_length(const struct site *s, unsigned index, struct err *e)
{
	const struct api_param *p = &s->call->params[index];

	switch (p->length_kind) {
	case API_PARAMETER:
		fprintf(s->out, "LENGTH(%s, %s)", p->name, s->call->params[p->length].name);
		return 0;
	case API_DEREFERENCED:
		fprintf(s->out, "LENGTH(%s, %s)", p->name, most_handles(s));
		return 0;
	case API_RANKS:
	case API_SOURCES:
	case API_DESTINATIONS:
		fprintf(s->out, "LENGTH_%s(%s, %s)",
			p->length_kind == API_RANKS     ? "RANKS"
			: p->length_kind == API_SOURCES ? "SOURCES"
							: "DESTINATIONS",
			api_buffer_before(s->call, index), api_communicator(s->call));
		return 0;
	default:
		return err_set(
			e, 0, "%s: nothing tells how many %s has", s->call->name, p->name);
	}
}

/* ---- in front of the call ---- */

static int print_array(const struct site *s, unsigned index, struct err *e)
{
	const struct api_param *p = &s->call->params[index];
	const char *n = p->name, *type = p->type->name;

	fprintf(s->out, "\tsize_t length_%s = ", n);
	if (print_length(s, index, e) < 0)
		return -1;
	if (way_of(s, p) == VALUE_ARRAY)
		fprintf(s->out, ";\n\tint *in_%s = ALLOC(%s, length_%s, int);\n", n, n, n);
	else
		fprintf(s->out, ";\n\tINNER_%s *in_%s = ALLOC(%s, length_%s, INNER_%s);\n",
			type, n, n, n, type);
	return 0;
}

static int print_local(const struct site *s, unsigned index, struct err *e)
{
	const struct api_param *p = &s->call->params[index];
	const char *n = p->name, *type = p->type->name;

	switch (way_of(s, p)) {
	case HANDLE_PLACE:
		fprintf(s->out, "\tINNER_%s in_%s = ", type, n);
		if (p->direction == API_OUT)
			fprintf(s->out, "(INNER_%s)0;\n", type);
		else
			fprintf(s->out,
				"%s ? IN_%s(*%s) : (INNER_%s)0;\n"
				"\tINNER_%s was_%s = in_%s;\n",
				n, type, n, type, type, n, n);
		return 0;
	case STATUS_PLACE:
		fprintf(s->out, "\tINNER_%s in_%s;\n", type, n);
		return 0;
	case HANDLE_ARRAY:
	case STATUS_ARRAY:
	case VALUE_ARRAY:
		return print_array(s, index, e);
	default:
		return 0;
	}
}

/* Loops and copies that fill locals. */
static void print_fill(const struct site *s, const struct api_param *p)
{
	const char *n = p->name;

	switch (way_of(s, p)) {
	case STATUS_PLACE:
		fprintf(s->out, "\tif (!IS_IGNORED(%s))\n\t\tIN_MPI_Status(&in_%s, %s);\n", n,
			n, n);
		return;
	case STATUS_ARRAY:
		fprintf(s->out,
			"\tfor (size_t i = 0; i < length_%s && !IS_IGNORED(%s); i++)\n"
			"\t\tIN_MPI_Status(&in_%s[i], &%s[i]);\n",
			n, n, n, n);
		return;
	case HANDLE_ARRAY:
		if (p->direction != API_OUT)
			fprintf(s->out,
				"\tfor (size_t i = 0; i < length_%s; i++)\n"
				"\t\tin_%s[i] = IN_%s(%s[i]);\n",
				n, n, p->type->name, n);
		else
			fprintf(s->out,
				"\tfor (size_t i = 0; i < length_%s; i++)\n"
				"\t\tin_%s[i] = (INNER_%s)0;\n",
				n, n, p->type->name);
		return;
	case VALUE_ARRAY:
		fprintf(s->out,
			"\tfor (size_t i = 0; i < length_%s; i++)\n"
			"\t\tin_%s[i] = IN_%s(%s[i]);\n",
			n, n, class_of(s, p, ABI_PARAMETERS), n);
		return;
	default:
		return;
	}
}

static void print_argument(const struct site *s, const struct api_param *p)
{
	const char *n = p->name, *class;

	switch (way_of(s, p)) {
	case HANDLE:
		fprintf(s->out, "IN_%s(%s)", p->type->name, n);
		return;
	case HANDLE_PLACE:
		fprintf(s->out, "%s ? &in_%s : NULL", n, n);
		return;
	case STATUS_PLACE:
		fprintf(s->out, "IS_IGNORED(%s) ? IGNORED : &in_%s", n, n);
		return;
	case STATUS_ARRAY:
		fprintf(s->out, "IS_IGNORED(%s) ? IGNORED : in_%s", n, n);
		return;
	case HANDLE_ARRAY:
	case VALUE_ARRAY:
		fprintf(s->out, "%s ? in_%s : NULL", n, n);
		return;
	case POINTER:
		class = class_of(s, p, ABI_POINTERS);
		fprintf(s->out, "IN_%s((void *)%s)", class ? class : "buffer", n);
		return;
	case VALUE:
		fprintf(s->out, "IN_%s(%s)", class_of(s, p, ABI_PARAMETERS), n);
		return;
	default:
		fputs(n, s->out);
	}
}

/* ---- behind it ---- */

static void print_handles_back(const struct site *s, const struct api_param *p)
{
	const char *n = p->name, *type = p->type->name;
	bool array = way_of(s, p) == HANDLE_ARRAY;

	if (p->direction == API_IN)
		return;
	if (!array && p->direction == API_OUT)
		fprintf(s->out, "\tif (%s && in_%s)\n\t\t*%s = OUT_%s(in_%s);\n", n, n, n, type,
			n);
	else if (!array)
		fprintf(s->out,
			"\tif (%s && in_%s != was_%s)\n\t\t*%s = CHANGED_%s(*%s, in_%s);\n", n,
			n, n, n, type, n, n);
	else if (p->direction == API_OUT)
		fprintf(s->out,
			"\tfor (size_t i = 0; i < length_%s; i++)\n\t\tif (in_%s[i])\n"
			"\t\t\t%s[i] = OUT_%s(in_%s[i]);\n",
			n, n, n, type, n);
	else
		fprintf(s->out,
			"\tfor (size_t i = 0; i < length_%s; i++)\n"
			"\t\tif (in_%s[i] != IN_%s(%s[i]))\n"
			"\t\t\t%s[i] = CHANGED_%s(%s[i], in_%s[i]);\n",
			n, n, type, n, n, type, n, n);
}

static void print_back(const struct site *s, const struct api_param *p)
{
	const char *n = p->name;

	switch (way_of(s, p)) {
	case HANDLE_PLACE:
	case HANDLE_ARRAY:
		print_handles_back(s, p);
		return;
	case STATUS_PLACE:
		if (p->direction != API_IN)
			fprintf(s->out,
				"\tif (!IS_IGNORED(%s))\n\t\tOUT_MPI_Status(%s, &in_%s);\n", n,
				n, n);
		return;
	case STATUS_ARRAY:
		fprintf(s->out,
			"\tfor (size_t i = 0; i < length_%s && !IS_IGNORED(%s); i++)\n"
			"\t\tOUT_MPI_Status(&%s[i], &in_%s[i]);\n",
			n, n, n, n);
		return;
	case VALUE_OUT:
		if (p->length_kind == API_PARAMETER)
			fprintf(s->out, "\tfor (int i = 0; i < %s && !gave; i++)\n\t\t%s[i] = ",
				s->call->params[p->length].name, n);
		else
			fprintf(s->out, "\tif (%s && !gave)\n\t\t*%s = ", n, n);
		fprintf(s->out, "OUT_%s(%s%s);\n", class_of(s, p, ABI_PARAMETERS), n,
			p->length_kind == API_PARAMETER ? "[i]" : "[0]");
		return;
	default:
		return;
	}
}

/* ---- a function ---- */

static bool needs_memory(const struct site *s)
{
	for (unsigned i = 0; i < s->call->param_count; i++) {
		enum way way = way_of(s, &s->call->params[i]);

		if (way == HANDLE_ARRAY || way == STATUS_ARRAY || way == VALUE_ARRAY)
			return true;
	}
	return false;
}

/* A request may need the arrays that it was begun with until it is complete. */
static const char *request_of(const struct site *s)
{
	for (unsigned i = 0; i < s->call->param_count; i++) {
		const struct api_param *p = &s->call->params[i];

		if (!strcmp(p->type->name, "MPI_Request") && way_of(s, p) == HANDLE_PLACE &&
			p->direction == API_OUT)
			return p->name;
	}
	return NULL;
}

static int print_body(const struct site *s, struct err *e)
{
	const struct api_param *params = s->call->params;
	unsigned count = s->call->param_count;
	bool memory = needs_memory(s), is_error = !s->call->result;

	if (memory)
		fputs(request_of(s) ? "\tWITH_KEPT_MEMORY\n" : "\tWITH_MEMORY\n", s->out);
	for (unsigned i = 0; i < count; i++)
		if (print_local(s, i, e) < 0)
			return -1;
	fprintf(s->out, "\t%s gave;\n\n", result_of(s));
	if (memory)
		fputs("\tNO_MEMORY_FAILS\n", s->out);
	for (unsigned i = 0; i < count; i++)
		print_fill(s, &params[i]);
	fprintf(s->out, "\tgave = CALL(%s, %s)(", s->call->name, own_name(s));
	for (unsigned i = 0; i < count; i++) {
		fputs(i ? ", " : "", s->out);
		print_argument(s, &params[i]);
	}
	fputs(");\n", s->out);
	for (unsigned i = 0; i < count; i++)
		print_back(s, &params[i]);
	if (memory && request_of(s))
		fprintf(s->out, "\tKEEP_MEMORY(%s)\n", request_of(s));
	else if (memory)
		fputs("\tDONE\n", s->out);
	fputs(is_error ? "\treturn OUT_error(gave);\n}\n\n" : "\treturn gave;\n}\n\n", s->out);
	return 0;
}

static int print_adapter(const struct site *s, struct err *e)
{
	fprintf(s->out, "CALLEE(%s, %s, %s, (", result_of(s), s->call->name, own_name(s));
	print_parameters(s, "INNER_", false);
	fprintf(s->out, "))\nADAPTER(%s, %s, %s, (", result_of(s), s->call->name, own_name(s));
	print_parameters(s, "OUTER_", true);
	fputs("))\n{\n", s->out);
	if (print_body(s, e) < 0)
		return -1;
	if (strcmp(own_name(s), s->call->name)) {
		fprintf(s->out, "ALSO_NAMED(%s, %s, %s, (", result_of(s), s->call->name,
			own_name(s));
		print_parameters(s, "OUTER_", false);
		fputs("))\n", s->out);
	}
	return 0;
}

static bool is_adapted(const struct site *s)
{
	return abi_find(s->abi, ABI_CALLS, s->call->name) ||
	       abi_list_of(s->abi, ABI_RENAMED, s->call->name);
}

/* Types of the API that are no pointers to functions. */
static void print_types(const struct site *s)
{
	for (size_t i = 0; i < s->api->type_count; i++) {
		const struct api_type *t = &s->api->types[i];

		if (abi_find(s->abi, ABI_EXCHANGED, t->name) || strncmp(t->name, "MPI", 3))
			continue;
		if (t->kind == API_HANDLE && t->size == 8)
			fprintf(s->out, "typedef void *%s;\n", t->name);
		else if (t->kind == API_INT || t->kind == API_ENUM || t->kind == API_HANDLE)
			fprintf(s->out, "typedef %s %s;\n", t->size == 8 ? "long" : "int",
				t->name);
	}
	fputc('\n', s->out);
}

int gen_adapter(const struct api *api, const struct abi *abi, FILE *out, struct err *e)
{
	struct site s = {api, abi, NULL, out};

	fputs("#ifndef ENTRY\n", out);
	print_types(&s);
	for (size_t i = 0; i < api->call_count; i++) {
		s.call = &api->calls[i];
		if (is_adapted(&s) && print_adapter(&s, e) < 0)
			return -1;
	}
	fputs("#else\n", out);
	for (size_t i = 0; i < api->call_count; i++) {
		s.call = &api->calls[i];
		if (is_adapted(&s) || abi_find(abi, ABI_BY_HAND, s.call->name))
			fprintf(out, "ENTRY(%s, %s)\n", s.call->name, own_name(&s));
	}
	fputs("#endif\n", out);
	return 0;
}
