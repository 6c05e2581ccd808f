/* The description of calls that the log's printer walks: struct call_info of stubs/call_info.h,
 * with kinds, directions and lengths by number. */
#include "stubs/gen/api.h"

static void param(const struct api_param *p, FILE *out)
{
	fprintf(out, "\t\t{\"%s\", \"%s\", %d, %u, %u, %d, %d, %u},\n", p->name,
		p->type->handle ? p->type->handle : p->type->name, p->type->kind, p->type->size,
		p->stars, p->direction, p->length_kind, p->length);
}

int gen_printer(const struct api *api, FILE *out, struct err *e)
{
	fprintf(out,
		"#include \"stubs/call_info.h\"\n\nconst struct call_info %s_calls[] = {\n",
		api->library);
	for (size_t i = 0; i < api->call_count; i++) {
		const struct api_call *call = &api->calls[i];

		fprintf(out, "\t{\"%s\", \"%s\", %u, {\n", call->name,
			api_class_name(call->class), call->param_count);
		for (unsigned j = 0; j < call->param_count; j++)
			param(&call->params[j], out);
		fprintf(out, "\t}},\n");
	}
	fprintf(out, "};\nconst size_t %s_call_count = %zu;\n", api->library, api->call_count);
	return 0;
}
