/* Ways into the code that exchanges handles, and functions that the real library calls. */
#include <sys/syscall.h>

#include "shared/mpi/mpi_state.h"
#include "shared/mpi/thunks.inc"
#include "stubs/record_entry.inc"

	.hidden mpi_record_call
	record_entry mpi

/* Functions that stand for the program's. */
	thunks mpi_op_thunks, mpi_op_called
	thunks mpi_error_thunks, mpi_error_called
	thunks mpi_file_error_thunks, mpi_file_error_called

/* In the place of the library's functions while the lower half's agent is in the library (library_reserved.c): each
 * says which one it stands for, and waits until another address is in its place. Behind the crossing; takes rax, r10
 * and r11. */
	.balign 16
	.globl mpi_waiting
	.hidden mpi_waiting
	.type mpi_waiting, @function
mpi_waiting:
	.cfi_startproc
	.set i, 0
	.rept MPI_WAITING
	.balign MPI_WAITING_SIZE
	mov $i, %r10d
	jmp await_library
	.set i, i + 1
	.endr
await_library:
	push %rdi
	.cfi_adjust_cfa_offset 8
	push %rsi
	.cfi_adjust_cfa_offset 8
	push %rcx
	.cfi_adjust_cfa_offset 8
1:	lea moment(%rip), %rdi
	xor %esi, %esi
	mov $SYS_nanosleep, %eax
	syscall
	mov %r10, %rax
	imul $MPI_WAITING_SIZE, %rax
	lea mpi_waiting(%rip), %rcx
	add %rax, %rcx
	lea mpi_targets(%rip), %rax
	mov (%rax, %r10, 8), %r11
	cmp %rcx, %r11
	je 1b
	pop %rcx
	.cfi_adjust_cfa_offset -8
	pop %rsi
	.cfi_adjust_cfa_offset -8
	pop %rdi
	.cfi_adjust_cfa_offset -8
	jmp *%r11
	.cfi_endproc
	.size mpi_waiting, . - mpi_waiting

	.section .rodata
	.balign 8
moment:	.quad 0, 200000	/* struct timespec */
	.text

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

/* int mpi_step(struct message_call *c): the address of the step is the first word. Behind the crossing it is not made
 * before the lower half's agent has left the library, which may change what a step reads of requests
 * (library_reserved.c). */
	.hidden mpi_cross, mpi_guard
	.globl mpi_step
	.hidden mpi_step
	.type mpi_step, @function
mpi_step:
	.cfi_startproc
	lea mpi_step_target(%rip), %r11
	jmp *mpi_cross(%rip)
	.cfi_endproc
	.size mpi_step, . - mpi_step

	.globl mpi_step_now
	.hidden mpi_step_now
	.type mpi_step_now, @function
mpi_step_now:
	.cfi_startproc
	jmp *(%rdi)
	.cfi_endproc
	.size mpi_step_now, . - mpi_step_now

	.globl mpi_step_waiting
	.hidden mpi_step_waiting
	.type mpi_step_waiting, @function
mpi_step_waiting:
	.cfi_startproc
	push %rdi
	.cfi_adjust_cfa_offset 8
1:	lea moment(%rip), %rdi
	xor %esi, %esi
	mov $SYS_nanosleep, %eax
	syscall
	lea mpi_step_waiting(%rip), %rax
	cmp %rax, mpi_step_target(%rip)
	je 1b
	pop %rdi
	.cfi_adjust_cfa_offset -8
	jmp *(%rdi)
	.cfi_endproc
	.size mpi_step_waiting, . - mpi_step_waiting

	.pushsection .data
	.balign 8
	.globl mpi_step_target
	.hidden mpi_step_target
mpi_step_target:
	.quad mpi_step_now
	.popsection

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
