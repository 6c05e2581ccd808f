/* Ways into the code that keeps records. */
#include "stubs/crossing/save.inc"
#include "stubs/cuda/query_cache.inc"

	.hidden cuda_record_call, cuda_targets, cuda_cross, object_used
	.text

/* From a guarded entry: eax is the index of the function, arguments are where the caller of the
 * function has put them. */
	.globl cuda_record
	.hidden cuda_record
	.type cuda_record, @function
cuda_record:
	.cfi_startproc
	PUSH_ARGUMENTS
	mov %eax, %edi
	mov %rsp, %rsi
	lea 56(%rsp), %rdx
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	call cuda_record_call
	add $56, %rsp
	.cfi_adjust_cfa_offset -56
	ret
	.cfi_endproc
	.size cuda_record, . - cuda_record

/* int cuda_call_words(void **slot, const uint64_t words[16]): call the driver with so many words. */
	.globl cuda_call_words
	.hidden cuda_call_words
	.type cuda_call_words, @function
cuda_call_words:
	.cfi_startproc
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	mov %rdi, %r11
	mov %rsi, %rax
	.set i, 15
	.rept 10
	push 8*i(%rax)
	.set i, i - 1
	.endr
	mov (%rax), %rdi
	mov 8(%rax), %rsi
	mov 16(%rax), %rdx
	mov 24(%rax), %rcx
	mov 32(%rax), %r8
	mov 40(%rax), %r9
	call *cuda_cross(%rip)
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size cuda_call_words, . - cuda_call_words

/* rax is a function that is used for the first time. Keeps all but rax. */
	.globl objects_first_use
	.hidden objects_first_use
	.type objects_first_use, @function
objects_first_use:
	.cfi_startproc
	SAVE_ARGUMENTS
	mov %rax, %rdi
	call object_used
	RESTORE_ARGUMENTS
	ret
	.cfi_endproc
	.size objects_first_use, . - objects_first_use

/* A function is used by a handle that is none of ours. Keeps all but rax. */
	.globl functions_strange
	.hidden functions_strange, function_lost
	.type functions_strange, @function
functions_strange:
	.cfi_startproc
	SAVE_ARGUMENTS
	call function_lost
	RESTORE_ARGUMENTS
	ret
	.cfi_endproc
	.size functions_strange, . - functions_strange

	/* Functions that come in a table, and are bodies. */
.macro guarded name
	.globl guarded_\name
	.hidden guarded_\name, body_\name
guarded_\name:
	.cfi_startproc
	lea body_\name(%rip), %r11
	jmp *crossing_guard@GOTPCREL(%rip)
	.cfi_endproc
.endm
	guarded storage_put
	guarded storage_delete
	guarded module_functions

	.section .text.hot, "ax", @progbits
	.globl guarded_storage_get
	.hidden guarded_storage_get, body_storage_get
guarded_storage_get:
	.cfi_startproc
	answer_storage_get
	lea body_storage_get(%rip), %r11
	jmp *crossing_guard@GOTPCREL(%rip)
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
