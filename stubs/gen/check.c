/*
 * A C file that compiles only when the table agrees with the header: the type of every function
 * and the size of every type. That no function is missing from the table is told by
 * stubs/gen/check-api, which compares names.
 */
#include "stubs/gen/api.h"

static void prototype(const struct api_call *call, FILE *out)
{
	fprintf(out, "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), CUresult(",
		call->name);
	for (unsigned i = 0; i < call->param_count; i++)
		fprintf(out, "%s%s", i ? ", " : "", call->params[i].declared);
	fprintf(out, "%s)), \"%s\");\n", call->param_count ? "" : "void", call->name);
}

int gen_check(const struct api *api, FILE *out, struct err *e)
{
	for (size_t i = 0; i < api->type_count; i++)
		if (api->types[i].kind != API_VOID)
			fprintf(out, "_Static_assert(sizeof(%s) == %u, \"%s\");\n",
				api->types[i].name, api->types[i].size, api->types[i].name);
	for (size_t i = 0; i < api->call_count; i++)
		prototype(&api->calls[i], out);
	return 0;
}
