/* Ways into the code that exchanges handles, and functions that the library below calls. */
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

	.section .note.GNU-stack, "", @progbits
