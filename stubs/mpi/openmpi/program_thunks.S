/* Functions that stand for the program's, which take Open MPI's handles. */
#include "shared/mpi/thunks.inc"

	thunks openmpi_op_thunks, openmpi_op_called
	thunks openmpi_error_thunks, openmpi_error_called
	thunks openmpi_file_error_thunks, openmpi_file_error_called

	.section .note.GNU-stack, "", @progbits
