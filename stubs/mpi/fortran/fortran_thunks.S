/* Functions that stand for the program's in Fortran, which take numbers for handles. */
#include "shared/mpi/thunks.inc"

	thunks fortran_op_thunks, fortran_op_called
	thunks fortran_comm_error_thunks, fortran_comm_error_called
	thunks fortran_win_error_thunks, fortran_win_error_called
	thunks fortran_file_error_thunks, fortran_file_error_called

	.section .note.GNU-stack, "", @progbits
