/*
 * The stub's entry points, in assembly. Each entry point loads r11 with the address of a slot that holds the
 * function to call, and jumps to the crossing (stubs/crossing/crossing.S). The function is the driver's own, or
 * code that exchanges the program's handles for the driver's and then calls that. Such code runs behind the
 * crossing's bookkeeping, so that a thread is never stopped for a checkpoint with a real handle in its
 * registers; it must touch no thread-local storage.
 *
 * A function with a body, or that leaves a record, is entered by NAME_guard, which leads to crossing_guard. An open
 * body is entered as it is, and crosses by itself. An inner body takes the place of the code that exchanges handles.
 *
 * When the library has ended for the program (crossing_end), NAME_cross and NAME_guard lead to
 * NAME_ended.
 *
 * A collective call that is counted is entered by NAME_counted, which is given the code that would have been entered
 * otherwise (counted_).
 *
 * real_NAME always crosses, whatever NAME does: hand-written bodies call it. The stub's own code supplies NAME_library and NAME_missing_result (stubs/library.h), and, where
 * a row is of class unsupported, NAME_refused.
 */
#include "stubs/gen/api.h"

#include <string.h>

#include "lib/util.h"

static const char *const registers[] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};

static bool is_virtual(const struct api_param *p)
{
	return !p->stars && p->type->kind == API_HANDLE && p->type->holding == API_VIRTUAL;
}

static bool has_virtual(const struct api_call *call)
{
	for (unsigned i = 0; i < call->param_count; i++)
		if (is_virtual(&call->params[i]))
			return true;
	return false;
}

/* Functions are loaded when they are first used: "used" notes that it was now. */
static const char *use_macro(const struct api_param *p)
{
	if (!strcmp(p->type->handle, "file"))
		return "file_handle";
	return !strcmp(p->type->handle, "function") || !strcmp(p->type->handle, "kernel")
		       ? "used"
		       : "handle";
}

/* Exchanges handles, or has what it may change forgotten. */
static bool has_translation(const struct api_call *call)
{
	return has_virtual(call) || call->class == API_THREAD;
}

/* The piece of code behind the crossing. */
static void print_translation(
	const struct api *api, const struct api_call *call, size_t index, FILE *out)
{
	fprintf(out, "internal lower_%s\n", call->name);
	if (call->class == API_THREAD)
		fprintf(out, "\tforget_answer\n");
	for (unsigned i = 0; i < call->param_count; i++) {
		const struct api_param *p = &call->params[i];
		struct api_place place = api_place(call, i);

		if (!is_virtual(p))
			continue;
		if (place.where == API_REGISTER)
			fprintf(out, "\t%s %%%s\n", use_macro(p), registers[place.number]);
		else
			fprintf(out,
				"\tmov %u(%%rsp), %%r10\n\t%s %%r10\n\tmov %%r10, %u(%%rsp)\n",
				8 + 8 * place.number, use_macro(p), 8 + 8 * place.number);
	}
	fprintf(out, "\tjmp *%s_targets+%zu(%%rip)\n", api->library, index * 8);
	fprintf(out, "word lower_%s, %zu\n", call->name, index);
}

/* The instruction that loads r11 with where the function's address in the lower half is. */
static void print_lead(
	const struct api *api, const struct api_call *call, size_t index, FILE *out)
{
	if (has_translation(call))
		fprintf(out, "\tlea word_lower_%s(%%rip), %%r11\n", call->name);
	else
		fprintf(out, "\tlea %s_targets+%zu(%%rip), %%r11\n", api->library, index * 8);
}

/* The label of what programs call. */
static void print_export(
	const struct api *api, const struct api_call *call, size_t index, FILE *out)
{
	if (api->profiled && !call->internal)
		fprintf(out, "export_profiled %s%s, %s\n", api->profiled, call->name,
			call->name);
	else
		fprintf(out, "export %s\n", call->name);
	if (api->notes && api_leaves(call))
		fprintf(out, "\tmovb $1, %s_called+%zu(%%rip)\n", api->library, index);
	if (call->shared)
		fprintf(out, "\tmovb $2, %s_called+%zu(%%rip)\n", api->library, index);
	if (api_is_counted(api, call))
		fprintf(out,
			"\tmov $%zu, %%eax\n\tlea counted_%s(%%rip), %%r10\n\tjmp %s_counted\n"
			"internal counted_%s\n",
			index, call->name, api->library, call->name);
}

static void print_guarded(const struct api *api, const struct api_call *call, size_t index,
	const char *prefix, FILE *out)
{
	print_export(api, call, index, out);
	if (call->answered)
		fprintf(out, "\tanswer_%s\n", call->name);
	fprintf(out, "\tguard %s_%s\n", prefix, call->name);
}

/* What programs call all the time lies together, on as few pages as possible. */
static bool is_hot(const struct api_call *call)
{
	return call->class == API_LAUNCH || call->class == API_COPY ||
	       call->class == API_SYNC || call->answered;
}

static void print_entry(
	const struct api *api, const struct api_call *call, size_t index, FILE *out)
{
	enum api_way way = api_way(call);
	unsigned callbacks = api_callbacks(call);

	fprintf(out, "\tend_code\n\t%s\n",
		is_hot(call) ? ".section .text.hot, \"ax\", @progbits" : ".text");
	if (way == API_REFUSE) {
		print_export(api, call, index, out);
		fprintf(out, "\t.hidden %s_refused\n\tmov $%zu, %%edi\n\tjmp %s_refused\n",
			api->library, index, api->library);
		return;
	}
	if (way == API_INNER_BODY) {
		fprintf(out, "\t.hidden inner_%s\n", call->name);
		fprintf(out, "\tword inner_%s, %zu\n", call->name, index);
		print_export(api, call, index, out);
		fprintf(out, "\tlea word_inner_%s(%%rip), %%r11\n\tcross\n", call->name);
		return;
	}
	if (way == API_VARIABLE)
		return;
	if (has_translation(call))
		print_translation(api, call, index, out);
	if ((way == API_PASS || way == API_TRANSLATE) && !callbacks)
		print_export(api, call, index, out);
	fprintf(out, "internal real_%s\n", call->name);
	print_lead(api, call, index, out);
	fprintf(out, "\tcross\n");
	if (way == API_BODY) {
		print_guarded(api, call, index, "body", out);
	} else if (way == API_RECORD) {
		print_guarded(api, call, index, "record", out);
		fprintf(out,
			"internal record_%s\n\t.hidden %s_record\n\tmov $%zu, %%eax\n"
			"\tjmp %s_record\n",
			call->name, api->library, index, api->library);
	} else if (way == API_OPEN) {
		print_export(api, call, index, out);
		fprintf(out, "\t.hidden open_%s\n\tjmp open_%s\n", call->name, call->name);
	} else if (callbacks) {
		print_export(api, call, index, out);
		print_lead(api, call, index, out);
		fprintf(out, "\tmov $%u, %%eax\n\tcross_callback\n", callbacks);
	}
}

/* %s in @text is the library's name. */
static void print_for(const struct api *api, const char *text, FILE *out)
{
	for (const char *p = text; *p; p++) {
		if (p[0] == '%' && p[1] == 's')
			fputs(api->library, out), p++;
		else
			fputc(*p, out);
	}
}

static const char head[] =
	".macro cross\n\tjmp *%s_cross(%rip)\n.endm\n"
	".macro cross_callback\n\tlea %s_cross(%rip), %r10\n"
	"\tjmp *crossing_callback@GOTPCREL(%rip)\n.endm\n"
	".macro enter_guard\n\tjmp *%s_guard(%rip)\n.endm\n"
	".hidden %s_targets, %s_cross, %s_library, %s_missing_result\n"
	".hidden %s_guard, %s_ended_result\n"
	".section .data.rel.ro, \"aw\"\n.balign 8\n.hidden %s_words\n.globl "
	"%s_words\n%s_words:\n"
	".section .rodata.word_calls, \"a\"\n.balign 4\n.hidden %s_word_calls\n"
	".globl %s_word_calls\n%s_word_calls:\n"
	".text\n"
	"internal %s_first\n\tlea %s_library(%rip), %r10\n"
	"\tjmp *crossing_open@GOTPCREL(%rip)\n"
	"internal %s_missing\n\tmov %s_missing_result(%rip), %eax\n\tret\n"
	"internal %s_ended\n\tmov %s_ended_result(%rip), %eax\n\tret\n";

/* A byte for each function, which is 1 when it was called and something may be left of it, and 2 when it has used the
 * shared pointer of a file. */
static const char notes[] =
	".section .bss\n.hidden %s_called\n.globl %s_called\n%s_called: .skip COUNT\n.text\n";

static const char tail[] =
	"\t.byte 0\n"
	".section .data.rel.ro\n.hidden %s_words_end\n.globl %s_words_end\n%s_words_end:\n"
	".section .data.rel,\"aw\"\n.balign 8\n.globl %s_cross\n%s_cross: .quad %s_first\n"
	".globl %s_guard\n%s_guard: .quad crossing_guard\n"
	".balign 64\n.globl %s_targets\n%s_targets: .skip 8 * COUNT\n"
	".section .note.GNU-stack,\"\",@progbits\n";

/* What the general code for records cannot take. */
static int check_call(const struct api_call *call, struct err *e)
{
	if (api_callbacks(call) >> 6)
		return err_set(e, 0, "%s: a callback must come in a register", call->name);
	if (api_way(call) != API_RECORD)
		return 0;
	for (unsigned i = 0; i < call->param_count; i++) {
		const struct api_param *p = &call->params[i];

		if (!p->stars && (p->type->size > 8 || p->type->kind == API_FLOAT ||
					 p->type->kind == API_CALLBACK))
			return err_set(
				e, 0, "%s: no record can be kept of %s", call->name, p->name);
	}
	return 0;
}

int gen_entries(const struct api *api, FILE *out, struct err *e)
{
	fprintf(out, ".set COUNT, %zu\n#include \"stubs/entry_macros.inc\"\n", api->call_count);
	if (api_has_virtual(api))
		print_for(api, "#include \"stubs/%s/%s_entry_macros.inc\"\n", out);
	print_for(api, head, out);
	if (api->notes)
		print_for(api, notes, out);
	if (api->counts)
		print_for(api, ".hidden %s_counted\n", out);
	for (size_t i = 0; i < api->call_count; i++) {
		if (check_call(&api->calls[i], e) < 0)
			return -1;
		print_entry(api, &api->calls[i], i, out);
	}
	print_for(api,
		"\tend_code\n.section .rodata\n.hidden %s_names\n.globl %s_names\n%s_names:\n",
		out);
	for (size_t i = 0; i < api->call_count; i++)
		fprintf(out, "\t.asciz \"%s\"\n", api->calls[i].name);
	print_for(api, tail, out);
	return 0;
}
