/* mpi_fortran_library.c - functions in C that Fortran calls with its handles, statuses and constants. */
#include <mpi.h>
#include <stdlib.h>

void wait_for_all_(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *statuses);
int ignored_(const MPI_Fint *status);

void wait_for_all_(const MPI_Fint *count, MPI_Fint *requests, MPI_Fint *statuses)
{
	enum { WORDS = sizeof(MPI_Status) / sizeof(MPI_Fint) };
	MPI_Request *r = calloc(*count, sizeof(*r));
	MPI_Status *s = calloc(*count, sizeof(*s));

	for (int i = 0; i < *count; i++)
		r[i] = MPI_Request_f2c(requests[i]);
	MPI_Waitall(*count, r, s);
	for (int i = 0; i < *count; i++) {
		requests[i] = MPI_Request_c2f(r[i]);
		if (statuses != MPI_F_STATUSES_IGNORE)
			MPI_Status_c2f(&s[i], statuses + WORDS * i);
	}
	free(s);
	free(r);
}

/* 1: the constant for one status, 2: for several, 0: @status is one. */
int ignored_(const MPI_Fint *status)
{
	return status == MPI_F_STATUS_IGNORE ? 1 : status == MPI_F_STATUSES_IGNORE ? 2 : 0;
}
