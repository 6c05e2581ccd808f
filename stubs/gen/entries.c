/*
 * The stub's entry points, in assembly. Each loads the address of its slot in the table of real
 * addresses and leaves for the crossing (stubs/crossing/crossing.S). Hand-written bodies are
 * prefixed with body_; what is prefixed with real_ crosses whatever the exported name does:
 * bodies call it. The stub's own
 * code supplies NAME_library, NAME_missing_result and NAME_refused (stubs/library.h).
 */
#include "stubs/gen/api.h"

#include "lib/util.h"

static void entry(const struct api *api, const struct api_call *call, size_t index, FILE *out)
{
	int callback = api_callback(call);

	if (call->class == API_UNSUPPORTED && !call->body) {
		fprintf(out, "export %s\n\tmov $%zu, %%edi\n\tjmp %s_refused\n", call->name,
			index, api->library);
		return;
	}
	if (call->body)
		fprintf(out, "export %s\n\tguard body_%s\n", call->name, call->name);
	if (!call->body && callback < 0)
		fprintf(out, "export %s\n", call->name);
	fprintf(out, "internal real_%s\n\tlea %s_targets+%zu(%%rip), %%r11\n\tcross\n",
		call->name, api->library, index * 8);
	if (!call->body && callback >= 0)
		fprintf(out,
			"export %s\n\tlea %s_targets+%zu(%%rip), %%r11\n\tmov $%d, "
			"%%eax\n\tcross_callback\n",
			call->name, api->library, index * 8, callback);
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
	".macro export name\n\t.balign 16\n\t.globl \\name\n"
	"\t.type \\name, @function\n\\name:\n.endm\n"
	".macro internal name\n\t.hidden \\name\n\t.globl \\name\n"
	"\t.type \\name, @function\n\\name:\n.endm\n"
	".macro guard body\n\t.hidden \\body\n\tlea \\body(%rip), %r11\n"
	"\tjmp *crossing_guard@GOTPCREL(%rip)\n.endm\n"
	".macro cross\n\tjmp *%s_cross(%rip)\n.endm\n"
	".macro cross_callback\n\tlea %s_cross(%rip), %r10\n"
	"\tjmp *crossing_callback@GOTPCREL(%rip)\n.endm\n"
	".hidden %s_targets, %s_cross, %s_refused, %s_library, %s_missing_result\n"
	".text\n"
	"internal %s_first\n\tlea %s_library(%rip), %r10\n"
	"\tjmp *crossing_open@GOTPCREL(%rip)\n"
	"internal %s_missing\n\tmov %s_missing_result(%rip), %eax\n\tret\n";

static const char tail[] =
	"\t.byte 0\n"
	".section .data.rel,\"aw\"\n.balign 8\n.globl %s_cross\n%s_cross: .quad %s_first\n"
	".bss\n.balign 64\n.globl %s_targets\n%s_targets: .skip 8 * COUNT\n"
	".section .note.GNU-stack,\"\",@progbits\n";

int gen_entries(const struct api *api, FILE *out, struct err *e)
{
	fprintf(out, ".set COUNT, %zu\n", api->call_count);
	print_for(api, head, out);
	for (size_t i = 0; i < api->call_count; i++) {
		if (api_callback(&api->calls[i]) >= 6)
			return err_set(e, 0, "%s: a callback must come in a register",
				api->calls[i].name);
		entry(api, &api->calls[i], i, out);
	}
	print_for(api, ".section .rodata\n.hidden %s_names\n.globl %s_names\n%s_names:\n", out);
	for (size_t i = 0; i < api->call_count; i++)
		fprintf(out, "\t.asciz \"%s\"\n", api->calls[i].name);
	print_for(api, tail, out);
	return 0;
}
