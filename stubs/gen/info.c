/* The description of calls that records are kept, replayed and printed by: struct call_info of
 * shared/call_info.h. */
#include "stubs/gen/api.h"

#include <ctype.h>

static void upper_case(const char *text, FILE *out)
{
	for (const char *c = text; *c; c++)
		fputc(*c == '-' ? '_' : toupper((unsigned char)*c), out);
}

/* CUDA_GRAPH_EXEC of graph-exec: what shared/cuda/cuda_state.h calls the kind. */
static void kind_name(const struct api *api, const struct api_type *type, FILE *out)
{
	if (type->kind != API_HANDLE || !type->holding) {
		fputs("0", out);
		return;
	}
	upper_case(api->library, out);
	fputc('_', out);
	upper_case(type->handle, out);
}

static void print_param(
	const struct api *api, const struct api_call *call, unsigned index, FILE *out)
{
	const struct api_param *p = &call->params[index];
	struct api_place place = api_place(call, index);
	unsigned word = place.number + (place.where == API_STACK ? 6 : 0);

	fprintf(out, "\t{\"%s\", \"%s\", ", p->name, p->type->name);
	kind_name(api, p->type, out);
	fprintf(out, ", %u, %d, %d, %d, %u, %d, %u, %u},\n", p->type->size, p->type->kind,
		p->type->holding, p->direction, p->stars, p->length_kind, p->length, word);
}

int gen_info(const struct api *api, FILE *out, struct err *e)
{
	unsigned first = 0;

	fprintf(out,
		"#include \"shared/call_info.h\"\n#include \"shared/%s/%s_state.h\"\n\n"
		"const struct call_param %s_params[] = {\n",
		api->library, api->library, api->library);
	for (size_t i = 0; i < api->call_count; i++)
		for (unsigned j = 0; j < api->calls[i].param_count; j++)
			print_param(api, &api->calls[i], j, out);
	fprintf(out, "};\n\nconst struct call_info %s_info[] = {\n", api->library);
	for (size_t i = 0; i < api->call_count; i++) {
		const struct api_call *call = &api->calls[i];

		fprintf(out, "\t{\"%s\", %s_params + %u, %d, %d, %u, %d, %d, %d, %d, %d},\n",
			call->name, api->library, first, call->class, api_way(call),
			call->param_count, call->value, call->on_context, call->loses,
			call->again, call->counted);
		first += call->param_count;
	}
	fprintf(out, "};\nconst unsigned %s_info_count = %zu;\n", api->library,
		api->call_count);
	return 0;
}
