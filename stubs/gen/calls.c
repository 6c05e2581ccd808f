/*
 * The list for tests: CALL(name, class, how, registers, stack, floats), once a function. `how`
 * is pass, callback, body or refuse; then how many general registers, words on the stack, and
 * floating point registers the arguments take.
 */
#include "stubs/gen/api.h"

static const char *how(const struct api_call *call)
{
	if (call->body)
		return "body";
	if (call->class == API_UNSUPPORTED)
		return "refuse";
	return api_callback(call) < 0 ? "pass" : "callback";
}

struct places {
	unsigned registers, stack, floats;
};

/* As the x86-64 ABI has it; structures here hold no floating point numbers. */
static void place(const struct api_param *p, struct places *places)
{
	unsigned words = 1;

	if (!p->stars && p->type->kind == API_FLOAT) {
		places->floats++;
		return;
	}
	if (!p->stars && p->type->kind == API_STRUCT)
		words = (p->type->size + 7) / 8;
	if (words > 2 || places->registers + words > 6)
		places->stack += words;
	else
		places->registers += words;
}

int gen_calls(const struct api *api, FILE *out, struct err *e)
{
	for (size_t i = 0; i < api->call_count; i++) {
		const struct api_call *call = &api->calls[i];
		struct places places = {0};

		for (unsigned j = 0; j < call->param_count; j++)
			place(&call->params[j], &places);
		fprintf(out, "CALL(%s, %s, %s, %u, %u, %u)\n", call->name,
			api_class_name(call->class), how(call), places.registers, places.stack,
			places.floats);
	}
	return 0;
}
