/*
 * The list of functions: CALL(name, class, how, registers, stack, floats), once a function. `how`
 * is pass, record, callback, body or refuse; then how many general registers, words on the
 * stack, and floating point registers the arguments take. Then FLUSHES(name), where the file that includes
 * the list has defined that, for each function after which what device code has printed is out.
 */
#include "stubs/gen/api.h"

static const char *call_macro(const struct api_call *call)
{
	static const char *const names[] = {
		[API_PASS] = "pass",
		[API_TRANSLATE] = "pass",
		[API_RECORD] = "record",
		[API_BODY] = "body",
		[API_INNER_BODY] = "body",
		[API_OPEN] = "body",
		[API_REFUSE] = "refuse",
		[API_VARIABLE] = "variable",
	};
	enum api_way way = api_way(call);

	return way != API_REFUSE && way != API_BODY && way != API_OPEN && api_callbacks(call)
		       ? "callback"
		       : names[way];
}

static unsigned words_of(const struct api_param *p)
{
	return !p->stars && p->type->kind == API_STRUCT ? (p->type->size + 7) / 8 : 1;
}

int gen_calls(const struct api *api, FILE *out, struct err *e)
{
	for (size_t i = 0; i < api->call_count; i++) {
		const struct api_call *call = &api->calls[i];
		unsigned words[3] = {0}; /* by place */

		for (unsigned j = 0; j < call->param_count; j++)
			words[api_place(call, j).where] += words_of(&call->params[j]);
		fprintf(out, "CALL(%s, %s, %s, %u, %u, %u)\n", call->name,
			api_class_name(call->class), call_macro(call), words[API_REGISTER],
			words[API_STACK], words[API_FLOAT_REGISTER]);
		/* crossing_print() makes the call anew, without what lies on the stack. */
		if (call->flushes && words[API_STACK])
			return err_set(e, 0, "%s: flushes, and has arguments on the stack",
				call->name);
	}
	fputs("#ifdef FLUSHES\n", out);
	for (size_t i = 0; i < api->call_count; i++)
		if (api->calls[i].flushes)
			fprintf(out, "FLUSHES(%s)\n", api->calls[i].name);
	fputs("#endif\n", out);
	return 0;
}
