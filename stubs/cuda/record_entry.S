/* Ways into the code that keeps records. */
#include "stubs/record_entry.inc"
#include "stubs/cuda/query_cache.inc"

	.hidden object_used, cuda_record_call
	.text

	record_entry cuda

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
