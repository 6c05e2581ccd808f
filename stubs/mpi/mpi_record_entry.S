/* Ways into the code that exchanges handles, and functions that the real library calls. */
#include "stubs/mpi/callbacks.h"
#include "stubs/record_entry.inc"

	.hidden mpi_record_call
	record_entry mpi

/* Functions that stand for the program's: each hands on which one it is as the fifth argument. */
.macro thunks name, to
	.balign 16
	.globl \name
	.hidden \name, \to
\name:
	.cfi_startproc
	.set i, 0
	.rept MPI_CALLBACKS
	.balign MPI_CALLBACK_SIZE
	mov $i, %r8d
	jmp \to
	.set i, i + 1
	.endr
	.cfi_endproc
.endm
	thunks mpi_op_thunks, mpi_op_called
	thunks mpi_error_thunks, mpi_error_called

/* In front of a collective call: eax is the index of the function, r10 the code that makes the call, arguments
 * are where the caller has put them. */
	.hidden mpi_counted_call
	.globl mpi_counted
	.hidden mpi_counted
	.type mpi_counted, @function
mpi_counted:
	.cfi_startproc
	PUSH_ARGUMENTS
	mov %eax, %edi
	mov %rsp, %rsi
	lea 56(%rsp), %rdx
	mov %r10, %rcx
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	call mpi_counted_call
	add $56, %rsp
	.cfi_adjust_cfa_offset -56
	ret
	.cfi_endproc
	.size mpi_counted, . - mpi_counted

/* int mpi_step(struct message_call *c): the address of the step is the first word. */
	.hidden mpi_cross, mpi_guard
	.globl mpi_step
	.hidden mpi_step
	.type mpi_step, @function
mpi_step:
	.cfi_startproc
	mov %rdi, %r11
	jmp *mpi_cross(%rip)
	.cfi_endproc
	.size mpi_step, . - mpi_step

/* int mpi_guarded(void *argument, int (*body)(void *argument)) */
	.globl mpi_guarded
	.hidden mpi_guarded
	.type mpi_guarded, @function
mpi_guarded:
	.cfi_startproc
	mov %rsi, %r11
	jmp *mpi_guard(%rip)
	.cfi_endproc
	.size mpi_guarded, . - mpi_guarded

/* int mpi_call_code(void *code, const uint64_t words[16]) */
	.globl mpi_call_code
	.hidden mpi_call_code
	.type mpi_call_code, @function
mpi_call_code:
	.cfi_startproc
	LOAD_WORDS
	call *%r11
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size mpi_call_code, . - mpi_call_code

	.section .note.GNU-stack, "", @progbits
