/*
 * The functions that Fortran calls, over those of an ABI for C: arguments are references, handles are integers, strings
 * have their lengths behind all else, and the error comes last. The file that includes it says how each is exchanged
 * (stubs/mpi/fortran/fortran.h):
 *
 *	FORTRAN(O, M, MM, NAME, UPPER, OWN, PARAMETERS)	begins a function: O_NAME_f, M_NAME_, MM_UPPER, MM_OWN_f ...
 *	ALSO_NAMED(O, M, MM, NAME, UPPER, OWN, TYPES, OF)	gives function OF these names, too
 *	C_type				the type of a handle or status in C
 *	TO_C_type(number), TO_FORTRAN_type(handle)	a handle, exchanged
 *	BUFFER(address), WEIGHTS(address), STATUS(status)	an address that may be that of a constant
 *	STRING_FOR_C(text, length)	a copy of a string of Fortran's
 *	GIVE_STRING(text, length, from)	a string for Fortran, from an array of STRING_MAX characters
 *	FROM_ONE(index)			what C counts from 0
 *	HAS_INDEXES(error)		whether a call that gives several of these has
 *	WITH_MEMORY, ALLOC, NO_MEMORY_GIVES, DONE	memory for as long as the call takes
 *	WITH_BEGUN_MEMORY, DONE_BEGUN	or as long as a request that it has begun
 *	GIVE(error)			hands the error on
 *	LENGTH(given, n), LENGTH_RANKS(buffer, comm) ...	how many elements an array has
 */
#include "stubs/gen/abi.h"

#include <ctype.h>
#include <string.h>

#include "lib/util.h"

enum way {
	PLAIN,  /* a reference to what C has the same of */
	VALUE,  /* looked up for C, which has it by value */
	HANDLE, /* the same, a handle */
	HANDLE_PLACE,
	HANDLE_ARRAY,
	STATUSES, /* one or more */
	POINTER,  /* an address that may be a constant's */
	WEIGHTS,  /* the same, of weights */
	STRING_IN,
	STRING_OUT,
	INDEX, /* one, or more */
};

struct site {
	const struct api *api;
	const struct abi *abi;
	const struct api_call *call;
	FILE *out;
};

static bool is_array(const struct api_param *p)
{
	return p->length_kind != API_ONE;
}

static bool is_exchanged(const struct site *s, const struct api_param *p)
{
	/* A keyval is an int in this ABI. */
	return abi_find(s->abi, ABI_EXCHANGED, p->type->name) &&
	       !abi_find(s->abi, ABI_NUMBERS, p->type->name);
}

/* By the call, too: an array of that name may have something else (MPI_Graph_get). */
static bool is_index(const struct site *s, const struct api_param *p)
{
	const struct abi_list *calls = abi_list_of(s->abi, ABI_INDEXES, p->name);

	for (size_t i = 0; calls && i < calls->count; i++)
		if (!strcmp(calls->words[i], s->call->name))
			return true;
	return false;
}

static enum way way_of(const struct site *s, const struct api_param *p)
{
	if (!strcmp(p->type->name, "char"))
		return p->direction == API_STRING ? STRING_IN : STRING_OUT;
	if (is_exchanged(s, p)) {
		if (p->type->kind == API_STRUCT)
			return STATUSES;
		return !p->stars ? HANDLE : is_array(p) ? HANDLE_ARRAY : HANDLE_PLACE;
	}
	if (!p->stars)
		return VALUE;
	if (abi_find(s->abi, ABI_POINTERS, p->name))
		return WEIGHTS;
	if (p->type->kind == API_VOID)
		return POINTER;
	return is_index(s, p) ? INDEX : PLAIN;
}

/* ---- names and types ---- */

static const char *own_name(const struct site *s)
{
	const struct abi_list *renamed = abi_list_of(s->abi, ABI_RENAMED, s->call->name);

	return renamed ? renamed->words[0] : s->call->name;
}

static void print_lower(const char *text, size_t length, FILE *out)
{
	for (size_t i = 0; i < length; i++)
		fputc(tolower((unsigned char)text[i]), out);
}

/* "MPIX_Bcast_init": ompix, mpix, MPIX, bcast_init, BCAST_INIT, Bcast_init */
static void print_names(const char *name, FILE *out)
{
	size_t prefix = strcspn(name, "_");
	const char *rest = name + prefix + 1;

	fputc('o', out);
	print_lower(name, prefix, out);
	fputs(", ", out);
	print_lower(name, prefix, out);
	fprintf(out, ", %.*s, ", (int)prefix, name);
	print_lower(rest, strlen(rest), out);
	fputs(", ", out);
	for (const char *c = rest; *c; c++)
		fputc(toupper((unsigned char)*c), out);
	fprintf(out, ", %s", rest);
}

/* As the function for C has it. */
static void print_c_type(const struct site *s, const struct api_param *p)
{
	const char *name = p->type->name, *at = strstr(p->declared, name);

	if (!at || !abi_find(s->abi, ABI_EXCHANGED, name))
		fputs(p->declared, s->out);
	else
		fprintf(s->out, "%.*sC_%s", (int)(at - p->declared), p->declared, at);
}

static void print_fortran_type(const struct site *s, const struct api_param *p)
{
	switch (way_of(s, p)) {
	case VALUE:
		fputs("const ", s->out);
		print_c_type(s, p);
		fputs(" *", s->out);
		return;
	case STRING_IN:
		fputs("const char *", s->out);
		return;
	case STRING_OUT:
		fputs("char *", s->out);
		return;
	case HANDLE:
		fputs("const int *", s->out);
		return;
	case HANDLE_PLACE:
	case HANDLE_ARRAY:
	case STATUSES:
		fputs(p->direction == API_IN ? "const int *" : "int *", s->out);
		return;
	default:
		print_c_type(s, p);
	}
}

static bool is_string(const struct site *s, const struct api_param *p)
{
	return way_of(s, p) == STRING_IN || way_of(s, p) == STRING_OUT;
}

static void print_parameters(const struct site *s)
{
	for (unsigned i = 0; i < s->call->param_count; i++) {
		const struct api_param *p = &s->call->params[i];

		print_fortran_type(s, p);
		fprintf(s->out, " %s, ", p->name);
	}
	fputs("int *ierror", s->out);
	for (unsigned i = 0; i < s->call->param_count; i++)
		if (is_string(s, &s->call->params[i]))
			fprintf(s->out, ", int length_%s", s->call->params[i].name);
}

static void print_declaration(const struct site *s)
{
	fprintf(s->out, "extern int P%s(", own_name(s));
	for (unsigned i = 0; i < s->call->param_count; i++) {
		fputs(i ? ", " : "", s->out);
		print_c_type(s, &s->call->params[i]);
	}
	fputs(s->call->param_count ? ");\n" : "void);\n", s->out);
}

/* ---- lengths ---- */

static int print_length(const struct site *s, unsigned index, struct err *e)
{
	const struct api_param *p = &s->call->params[index];

	switch (p->length_kind) {
	case API_PARAMETER:
		fprintf(s->out, "LENGTH(%s, *%s)", p->name, s->call->params[p->length].name);
		return 0;
	case API_RANKS:
		fprintf(s->out, "LENGTH_RANKS(%s, *%s)", api_buffer_before(s->call, index),
			api_communicator(s->call));
		return 0;
	case API_SOURCES:
	case API_DESTINATIONS:
		fprintf(s->out, "LENGTH_%s(*%s)",
			p->length_kind == API_SOURCES ? "SOURCES" : "DESTINATIONS",
			api_communicator(s->call));
		return 0;
	default:
		return err_set(
			e, 0, "%s: nothing tells how many %s has", s->call->name, p->name);
	}
}

/* ---- the body ---- */

static int print_local(const struct site *s, unsigned index, struct err *e)
{
	const struct api_param *p = &s->call->params[index];
	const char *n = p->name, *type = p->type->name;

	switch (way_of(s, p)) {
	case HANDLE_PLACE:
		if (p->direction == API_OUT)
			fprintf(s->out, "\tC_%s in_%s = NULL;\n", type, n);
		else
			fprintf(s->out, "\tC_%s in_%s = TO_C_%s(*%s);\n", type, n, type, n);
		return 0;
	case HANDLE_ARRAY:
		fprintf(s->out, "\tsize_t length_%s = ", n);
		if (print_length(s, index, e) < 0)
			return -1;
		fprintf(s->out, ";\n\tC_%s *in_%s = ALLOC(%s, length_%s, C_%s);\n", type, n, n,
			n, type);
		return 0;
	case STRING_IN:
		fprintf(s->out, "\tchar *in_%s = STRING_FOR_C(%s, length_%s);\n", n, n, n);
		return 0;
	case STRING_OUT:
		fprintf(s->out, "\tchar in_%s[STRING_MAX] = \"\";\n", n);
		return 0;
	default:
		return 0;
	}
}

static void print_argument(const struct site *s, const struct api_param *p)
{
	const char *n = p->name;

	switch (way_of(s, p)) {
	case VALUE:
		fprintf(s->out, "*%s", n);
		return;
	case HANDLE:
		fprintf(s->out, "TO_C_%s(*%s)", p->type->name, n);
		return;
	case HANDLE_PLACE:
		fprintf(s->out, "&in_%s", n);
		return;
	case HANDLE_ARRAY:
	case STRING_IN:
	case STRING_OUT:
		fprintf(s->out, "in_%s", n);
		return;
	case STATUSES:
		fprintf(s->out, "STATUS(%s)", n);
		return;
	case POINTER:
		fprintf(s->out, "BUFFER(%s)", n);
		return;
	case WEIGHTS:
		fprintf(s->out, "WEIGHTS(%s)", n);
		return;
	default:
		fputs(n, s->out);
	}
}

static void print_fill(const struct site *s, const struct api_param *p)
{
	if (way_of(s, p) == HANDLE_ARRAY)
		fprintf(s->out,
			"\tfor (size_t i = 0; i < length_%s; i++)\n"
			"\t\tin_%s[i] = TO_C_%s(%s[i]);\n",
			p->name, p->name, p->type->name, p->name);
}

/* Arrays that a call gives part of say by another parameter how long that is. */
static int print_indexes(const struct site *s, const struct api_param *p, struct err *e)
{
	const char *n = p->name;

	switch (p->length_kind) {
	case API_DEREFERENCED:
		fprintf(s->out,
			"\tfor (int i = 0; HAS_INDEXES(gave) && i < *%s; i++)\n\t\t%s[i] = "
			"FROM_ONE(%s[i]);\n",
			s->call->params[p->length].name, n, n);
		return 0;
	case API_ONE:
		fprintf(s->out, "\tif (!gave)\n\t\t*%s = FROM_ONE(*%s);\n", n, n);
		return 0;
	default:
		return err_set(e, 0, "%s: nothing tells how many indexes %s has been given",
			s->call->name, n);
	}
}

static int print_back(const struct site *s, const struct api_param *p, struct err *e)
{
	const char *n = p->name, *type = p->type->name;

	switch (way_of(s, p)) {
	case HANDLE_PLACE:
		if (p->direction == API_OUT)
			fputs("\tif (!gave)\n\t", s->out);
		fprintf(s->out, "\t*%s = TO_FORTRAN_%s(in_%s);\n", n, type, n);
		return 0;
	case HANDLE_ARRAY:
		if (p->direction != API_IN)
			fprintf(s->out,
				"\tfor (size_t i = 0; i < length_%s; i++)\n"
				"\t\t%s[i] = TO_FORTRAN_%s(in_%s[i]);\n",
				n, n, type, n);
		return 0;
	case STRING_OUT:
		fprintf(s->out, "\tif (!gave)\n\t\tGIVE_STRING(%s, length_%s, in_%s);\n", n, n,
			n);
		return 0;
	case INDEX:
		return print_indexes(s, p, e);
	default:
		return 0;
	}
}

static bool has_way(const struct site *s, enum way way)
{
	for (unsigned i = 0; i < s->call->param_count; i++)
		if (way_of(s, &s->call->params[i]) == way)
			return true;
	return false;
}

/* It begins a request. */
static bool begins(const struct site *s)
{
	for (unsigned i = 0; i < s->call->param_count; i++) {
		const struct api_param *p = &s->call->params[i];

		if (!strcmp(p->type->name, "MPI_Request") && p->stars &&
			p->direction == API_OUT)
			return true;
	}
	return false;
}

static int print_body(const struct site *s, struct err *e)
{
	const struct api_param *params = s->call->params;
	unsigned count = s->call->param_count;
	bool memory = has_way(s, HANDLE_ARRAY) || has_way(s, STRING_IN);

	if (memory)
		fputs(begins(s) ? "\tWITH_BEGUN_MEMORY\n" : "\tWITH_MEMORY\n", s->out);
	for (unsigned i = 0; i < count; i++)
		if (print_local(s, i, e) < 0)
			return -1;
	fputs("\tint gave;\n\n", s->out);
	if (memory)
		fputs("\tNO_MEMORY_GIVES(ierror)\n", s->out);
	for (unsigned i = 0; i < count; i++)
		print_fill(s, &params[i]);
	fprintf(s->out, "\tgave = P%s(", own_name(s));
	for (unsigned i = 0; i < count; i++) {
		fputs(i ? ", " : "", s->out);
		print_argument(s, &params[i]);
	}
	fputs(");\n", s->out);
	for (unsigned i = 0; i < count; i++)
		if (print_back(s, &params[i], e) < 0)
			return -1;
	if (memory)
		fputs(begins(s) ? "\tDONE_BEGUN\n" : "\tDONE\n", s->out);
	fputs("\tGIVE(gave);\n}\n\n", s->out);
	return 0;
}

static int print_function(const struct site *s, struct err *e)
{
	print_declaration(s);
	fputs("FORTRAN(", s->out);
	print_names(own_name(s), s->out);
	fputs(", (", s->out);
	print_parameters(s);
	fputs("))\n{\n", s->out);
	if (print_body(s, e) < 0)
		return -1;
	if (own_name(s) == s->call->name)
		return 0;
	/* Later versions of the other ABI. */
	fputs("ALSO_NAMED(", s->out);
	print_names(s->call->name, s->out);
	fputs(", ", s->out);
	print_names(own_name(s), s->out);
	fputs(")\n\n", s->out);
	return 0;
}

/* Of what is in the other ABI at all, what Fortran has and no hand has written. */
static bool is_generated(const struct site *s)
{
	const char *name = s->call->name;

	if (abi_find(s->abi, ABI_FORTRAN_BY_HAND, name) || abi_find(s->abi, ABI_C_ONLY, name) ||
		s->call->class == API_TOOL)
		return false;
	return abi_find(s->abi, ABI_CALLS, name) || abi_find(s->abi, ABI_BY_HAND, name) ||
	       abi_list_of(s->abi, ABI_RENAMED, name);
}

int gen_fortran(const struct api *api, const struct abi *abi, FILE *out, struct err *e)
{
	struct site s = {api, abi, NULL, out};

	for (size_t i = 0; i < api->call_count; i++) {
		s.call = &api->calls[i];
		if (is_generated(&s) && print_function(&s, e) < 0)
			return -1;
	}
	return 0;
}
