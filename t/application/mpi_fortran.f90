! An MPI program in Fortran: what the language's library adds to what C programs use, an operation,
! attributes with their functions, and an error handler. Prints "rank N: done".
module functions
contains
subroutine larger(a, b, n, datatype)
  integer :: n, datatype, a(n), b(n)
  b = max(a, b)
end subroutine
subroutine copy(comm, key, extra, was, becomes, flag, ierror)
  use mpi, only: MPI_ADDRESS_KIND, MPI_SUCCESS
  integer :: comm, key, ierror
  integer(MPI_ADDRESS_KIND) :: extra, was, becomes
  logical :: flag
  becomes = was + extra
  flag = .true.
  ierror = MPI_SUCCESS
end subroutine
subroutine forget(comm, key, value, extra, ierror)
  use mpi, only: MPI_ADDRESS_KIND, MPI_SUCCESS
  integer :: comm, key, ierror
  integer(MPI_ADDRESS_KIND) :: value, extra
  ierror = MPI_SUCCESS
end subroutine
end module

program main
  use mpi
  use functions
  implicit none
  integer :: rank, ranks, largest, op, key, comm, ierror, status(MPI_STATUS_SIZE), in
  integer(MPI_ADDRESS_KIND) :: value
  logical :: flag
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call MPI_Op_create(larger, .true., op, ierror)
  call MPI_Allreduce(rank, largest, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierror)
  if (largest /= ranks - 1) stop 2
  call MPI_Allreduce(MPI_IN_PLACE, largest, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (largest /= ranks * (ranks - 1)) stop 3
  call MPI_Comm_create_keyval(copy, forget, key, 5_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 10_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call MPI_Comm_get_attr(comm, key, value, flag, ierror)
  if (.not. flag .or. value /= 15) stop 4
  call MPI_Comm_free(comm, ierror)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), 1, in, 1, MPI_INTEGER, &
                    mod(rank + ranks - 1, ranks), 1, MPI_COMM_WORLD, status, ierror)
  if (status(MPI_SOURCE) /= in) stop 5
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), 1, in, 1, MPI_INTEGER, &
                    MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  print '(a,i0,a)', 'rank ', rank, ': done'
  call MPI_Finalize(ierror)
end program
