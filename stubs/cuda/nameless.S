/* Behind the crossing, in front of the driver's functions without a name: exchange of handles. */
#include "stubs/gen/entries.inc"
#include "stubs/cuda/nameless.h"

	.hidden cuda_nameless, cuda_nameless_targets
	.globl cuda_nameless
	.balign NAMELESS_SIZE
cuda_nameless:
	.set i, 0
	.rept NAMELESS
	.balign NAMELESS_SIZE
	lea cuda_nameless_targets+8*i(%rip), %r11
	jmp nameless_call
	.set i, i + 1
	.endr

nameless_call:
	forget_answer
	handle %rdi
	handle %rsi
	handle %rdx
	handle %rcx
	handle %r8
	handle %r9
	jmp *(%r11)

	.section .note.GNU-stack, "", @progbits
