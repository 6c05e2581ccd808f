/* Functions that Open MPI's library calls with its handles. */
#include "shared/mpi/thunks.inc"

	thunks exchanged_op_thunks, exchanged_op_called
	thunks exchanged_error_thunks, exchanged_error_called
	thunks exchanged_file_error_thunks, exchanged_file_error_called

	.section .note.GNU-stack, "", @progbits
