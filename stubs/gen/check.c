/*
 * A C file that compiles only when the table agrees with the header: the type of every function
 * and the size of every type. That no function is missing from the table is told by
 * stubs/gen/check-api, which compares names.
 */
#include "stubs/gen/api.h"

static void print_prototype(const struct api *api, const struct api_call *call, FILE *out)
{
	const char *result = call->result ? call->result->name : api->result;

	fprintf(out, "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), %s(",
		call->name, result);
	for (unsigned i = 0; i < call->param_count; i++)
		fprintf(out, "%s%s", i ? ", " : "", call->params[i].declared);
	fprintf(out, "%s)), \"%s\");\n",
		call->variadic      ? ", ..."
		: call->param_count ? ""
				    : "void",
		call->name);
}

/* Have @print print what the header declares, if it is of a version that does. */
static void print_declared(const struct api *api, const struct api_call *call,
	void (*print)(const struct api *api, const struct api_call *call, FILE *out), FILE *out)
{
	bool later = api->version && call->since;

	if (call->internal || call->class == API_DATA)
		return;
	if (later)
		fprintf(out, "#if %s >= %u\n", api->version, call->since);
	print(api, call, out);
	if (later)
		fprintf(out, "#endif\n");
}

int gen_check(const struct api *api, FILE *out, struct err *e)
{
	for (size_t i = 0; i < api->type_count; i++)
		if (api->types[i].kind != API_VOID)
			fprintf(out, "_Static_assert(sizeof(%s) == %u, \"%s\");\n",
				api->types[i].name, api->types[i].size, api->types[i].name);
	for (size_t i = 0; i < api->call_count; i++)
		if (!api->calls[i].unchecked)
			print_declared(api, &api->calls[i], print_prototype, out);
	return 0;
}

static void print_name(const struct api *api, const struct api_call *call, FILE *out)
{
	fprintf(out, "%s\n", call->name);
}

/* What the header declares, for the preprocessor. */
int gen_names(const struct api *api, FILE *out, struct err *e)
{
	for (size_t i = 0; i < api->call_count; i++)
		print_declared(api, &api->calls[i], print_name, out);
	return 0;
}
