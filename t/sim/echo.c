/*
 * Every function of the driver, none of which does anything: each returns a number made of
 * which function it is and of all its arguments, so that a caller can tell whether they have
 * come through whole. Built alone it is a driver of its own; in the simulated driver it stands
 * for the functions that are not simulated.
 */
#include "cuda.index.h"
#include "t/sim/sim.h"

static const struct {
	const char *name;
	unsigned registers, stack, floats;
} functions[] = {
#define CALL(name, class, how, registers, stack, floats) {#name, registers, stack, floats},
#include "cuda.calls.h"
#undef CALL
};

struct echo_arguments {
	double floats[2];
	uint64_t registers[6];
	uint64_t index;
	uint64_t return_address;
	uint64_t stack[18];
};

int sim_echo(const struct echo_arguments *a) __attribute__((visibility("hidden")));

/* The callers compute the same (t/split/arguments.c). */
int sim_echo(const struct echo_arguments *a)
{
	uint64_t hash = a->index + 1;

	sim_enter(functions[a->index].name);
	for (unsigned i = 0; i < functions[a->index].registers; i++)
		hash = hash * 0x9e3779b97f4a7c15 + a->registers[i];
	for (unsigned i = 0; i < functions[a->index].stack; i++)
		hash = hash * 0x9e3779b97f4a7c15 + a->stack[i];
	for (unsigned i = 0; i < functions[a->index].floats; i++)
		hash = hash * 0x9e3779b97f4a7c15 + *(const uint32_t *)&a->floats[i];
	return hash >> 40 | 0x40000000;
}

__asm__(".text\n"
	"echo_entry:\n"
	"	push %rax\n"
	"	push %r9\n"
	"	push %r8\n"
	"	push %rcx\n"
	"	push %rdx\n"
	"	push %rsi\n"
	"	push %rdi\n"
	"	sub $16, %rsp\n"
	"	movsd %xmm0, (%rsp)\n"
	"	movsd %xmm1, 8(%rsp)\n"
	"	mov %rsp, %rdi\n"
	"	call sim_echo\n"
	"	add $72, %rsp\n"
	"	ret\n"
	".set index, 0\n"
#define CALL(name, class, how, registers, stack, floats)                                       \
	".weak " #name "\n.type " #name ", @function\n" #name ": mov $index, %eax\n"           \
	"jmp echo_entry\n.set index, index + 1\n"
#include "cuda.calls.h"
#undef CALL
);
