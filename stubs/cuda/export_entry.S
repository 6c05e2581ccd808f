/* Behind the crossing, around the driver's functions without a name: before, exchange of handles;
 * after, whether the thread's current context is still the one of which answers are known
 * (query_cache.c). */
#include "stubs/crossing/save.inc"
#include "stubs/cuda/cuda_entry_macros.inc"
#include "stubs/cuda/export_entry.h"
#include "stubs/crossing/unwind.inc"

	.hidden cuda_export_entry, cuda_export_entry_targets, query_cache_ask_driver
	.globl cuda_export_entry
	.balign EXPORT_ENTRY_SIZE
cuda_export_entry:
	.cfi_startproc
	.set i, 0
	.rept EXPORT_ENTRIES
	.balign EXPORT_ENTRY_SIZE
	lea cuda_export_entry_targets+8*i(%rip), %r11
	jmp export_entry_call
	.set i, i + 1
	.endr
	.cfi_endproc

export_entry_call:
	.cfi_startproc
	forget_answer
	handle %rdi
	handle %rsi
	handle %rdx
	handle %rcx
	handle %r8
	handle %r9
	lea returned(%rip), %rax
	mov %rax, (%rsp)
	jmp *(%r11)

	/* In place of the crossing, on its way out: the stack is as the call found it. (The nop is
	 * for unwinders, which look up the instruction before a return address.) */
	UNWIND_ENTRY
	nop
returned:
	push %rax
	.cfi_adjust_cfa_offset 8
	push %rdx
	.cfi_adjust_cfa_offset 8
	sub $16, %rsp
	.cfi_adjust_cfa_offset 16
	movups %xmm0, (%rsp)
	mov %rbx, %rdi
	call query_cache_ask_driver
	movups (%rsp), %xmm0
	add $16, %rsp
	.cfi_adjust_cfa_offset -16
	pop %rdx
	.cfi_adjust_cfa_offset -8
	pop %rax
	.cfi_adjust_cfa_offset -8
	jmp *crossing_returned@GOTPCREL(%rip)
	.cfi_endproc

	/* In place of a function that is called for the first time: r11 leads to its word. */
	.globl export_entry_first
	.hidden export_entry_first, export_entry_used
export_entry_first:
	.cfi_startproc
	SAVE_ARGUMENTS
	mov %r11, %rdi
	call export_entry_used
	RESTORE_ARGUMENTS
	jmp *(%r11)
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
