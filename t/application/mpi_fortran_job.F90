! An MPI program of several ranks in Fortran: what the language's library exchanges on the way to C, in each round once
! more, with what is held all the time made before the first one. Checks what it gets. The first round behind a checkpoint
! or restart is shown by a symbolic link "round.RANK" that is made anew. "ready" after the first round, and "ok" at the
! end, when the file "go" is there.
!
! Of one text three programs: with -DBY_HEADER by mpif.h, with -DBY_F08 by the module mpi_f08, else by the module mpi.
#ifdef BY_F08
#define COMM type(MPI_Comm)
#define GROUP type(MPI_Group)
#define DATATYPE type(MPI_Datatype)
#define OP type(MPI_Op)
#define INFO type(MPI_Info)
#define HANDLER type(MPI_Errhandler)
#define REQUEST type(MPI_Request)
#define STATUS_OF(s) type(MPI_Status) :: s
#define STATUSES_OF(s, n) type(MPI_Status) :: s(n)
#define SOURCE_OF(s) s%MPI_SOURCE
#define SOURCE_AT(s, i) s(i)%MPI_SOURCE
#else
#define COMM integer
#define GROUP integer
#define DATATYPE integer
#define OP integer
#define INFO integer
#define HANDLER integer
#define REQUEST integer
#define STATUS_OF(s) integer :: s(MPI_STATUS_SIZE)
#define STATUSES_OF(s, n) integer :: s(MPI_STATUS_SIZE, n)
#define SOURCE_OF(s) s(MPI_SOURCE)
#define SOURCE_AT(s, i) s(MPI_SOURCE, i)
#endif
#if defined(BY_F08)
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#elif defined(BY_HEADER)
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#else
#define USE_MPI use mpi
#define INCLUDE_MPI
#endif
#define CHECK(what) call check(what, __LINE__)

module state
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: rank, ranks, left, right, round = 0, errors = 0, deleted = 0, queried = 0
  COMM :: copy, grid, graph
  DATATYPE :: pair
  OP :: larger_pair
  INFO :: hints
  REQUEST :: lasting(2), late(3)
  GROUP :: everybody
  integer :: key, type_key, sends(1), receives(1), late_in(2)
contains

subroutine check(is_so, line)
  logical, intent(in) :: is_so
  integer, intent(in) :: line
  integer :: ierror
  if (is_so) return
  print '(a,i0,a,i0,a,i0)', 'rank ', rank, ', round ', round, ', line ', line
  flush (6)
  call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
end subroutine

end module

! ---- what the library calls ----

module functions
  use state
  implicit none
contains

#ifdef BY_F08
subroutine larger(a_at, b_at, n, datatype_of)
  use, intrinsic :: iso_c_binding
  type(c_ptr), value :: a_at, b_at
  integer :: n
  DATATYPE :: datatype_of
  integer, pointer :: a(:, :), b(:, :)
  integer :: i
  call c_f_pointer(a_at, a, [2, n])
  call c_f_pointer(b_at, b, [2, n])
#else
subroutine larger(a, b, n, datatype_of)
  integer :: n
  DATATYPE :: datatype_of
  integer :: a(2, n), b(2, n)
  integer :: i
#endif
  CHECK(datatype_of == pair)
  do i = 1, n
    if (a(1, i) > b(1, i)) b(:, i) = a(:, i)
  end do
end subroutine

subroutine copy_comm(of, k, extra, was, becomes, flag, ierror)
  COMM :: of
  integer :: k, ierror
  integer(MPI_ADDRESS_KIND) :: extra, was, becomes
  logical :: flag
  CHECK(of == copy .and. k == key)
  becomes = was + extra
  flag = .true.
  ierror = MPI_SUCCESS
end subroutine

subroutine delete_comm(of, k, was, extra, ierror)
  COMM :: of
  integer :: k, ierror
  integer(MPI_ADDRESS_KIND) :: was, extra
  CHECK(k == key .and. extra == 5 .and. was >= 2_8**33)
  deleted = deleted + 1
  ierror = MPI_SUCCESS
end subroutine

subroutine count_error(of, code)
  COMM :: of
  integer :: code
  CHECK(of == copy .and. code == MPI_ERR_OTHER)
  errors = errors + 1
end subroutine

subroutine query(extra, status, ierror)
  integer(MPI_ADDRESS_KIND) :: extra
  STATUS_OF(status)
  integer :: ierror
  call MPI_Status_set_elements(status, MPI_INTEGER, int(extra), ierror)
  call MPI_Status_set_cancelled(status, .false., ierror)
  SOURCE_OF(status) = 77
  queried = queried + 1
  ierror = MPI_SUCCESS
end subroutine

subroutine free_nothing(extra, ierror)
  integer(MPI_ADDRESS_KIND) :: extra
  integer :: ierror
  ierror = MPI_SUCCESS
end subroutine

subroutine cancel_nothing(extra, complete, ierror)
  integer(MPI_ADDRESS_KIND) :: extra
  logical :: complete
  integer :: ierror
  ierror = MPI_SUCCESS
end subroutine

end module

program main
  use state
  use functions
  implicit none
  integer :: ierror, provided
  logical :: on = .true.

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  right = mod(rank + 1, ranks)
  left = mod(rank + ranks - 1, ranks)
  call make_all
  call send_late(0)
  do while (on)
    round = round + 1
    call receive_late(round - 1)
    call send_late(round)
    call operations
    call messages
    call vectors
    call attributes
    call names
    call topologies
    call addresses
    call generalised
    call end_round(on)
  end do
  call receive_late(round)
  call free_all
  call MPI_Finalize(ierror)
  print '(a)', 'ok'

contains

subroutine make_all
  HANDLER :: handler
  call MPI_Comm_dup(MPI_COMM_WORLD, copy, ierror)
  call MPI_Comm_set_name(copy, 'the copy  ', ierror)
  call MPI_Comm_create_errhandler(count_error, handler, ierror)
  call MPI_Comm_set_errhandler(copy, handler, ierror)
  call MPI_Errhandler_free(handler, ierror)
  call MPI_Comm_create_keyval(copy_comm, delete_comm, key, 5_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(copy, key, 2_MPI_ADDRESS_KIND**33 + rank, ierror)
  call MPI_Type_contiguous(2, MPI_INTEGER, pair, ierror)
  call MPI_Type_commit(pair, ierror)
  call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, type_key, 0_MPI_ADDRESS_KIND, ierror)
  call MPI_Type_set_attr(pair, type_key, -3_MPI_ADDRESS_KIND, ierror)
  call MPI_Op_create(larger, .true., larger_pair, ierror)
  call MPI_Info_create(hints, ierror)
  call MPI_Info_set(hints, 'key', '  a value  ', ierror)
  call MPI_Comm_group(copy, everybody, ierror)
  call MPI_Send_init(sends, 1, MPI_INTEGER, right, 3, copy, lasting(1), ierror)
  call MPI_Recv_init(receives, 1, MPI_INTEGER, left, 3, copy, lasting(2), ierror)
  call make_topologies
end subroutine

subroutine make_topologies
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., grid, ierror)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, [left, right], MPI_UNWEIGHTED, 2, &
    [right, left], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, ierror)
end subroutine

subroutine free_all
  call MPI_Request_free(lasting(1), ierror)
  call MPI_Request_free(lasting(2), ierror)
  CHECK(lasting(1) == MPI_REQUEST_NULL)
  call MPI_Op_free(larger_pair, ierror)
  call MPI_Type_free(pair, ierror)
  call MPI_Type_free_keyval(type_key, ierror)
  call MPI_Info_free(hints, ierror)
  call MPI_Group_free(everybody, ierror)
  call MPI_Comm_free(graph, ierror)
  call MPI_Comm_free(grid, ierror)
  deleted = 0
  call MPI_Comm_free(copy, ierror)
  CHECK(deleted == 1 .and. copy == MPI_COMM_NULL)
  call MPI_Comm_free_keyval(key, ierror)
  CHECK(key == MPI_KEYVAL_INVALID)
end subroutine

subroutine end_round(on)
  logical, intent(out) :: on
  character(32) :: link, text
  integer :: failed
  write (link, '(a,i0)') 'round.', rank
  write (text, '(i0)') round
  call symlnk(trim(text), trim(link), failed) ! it may be there
  on = access('go', ' ') /= 0
  call MPI_Bcast(on, 1, MPI_LOGICAL, 0, MPI_COMM_WORLD, ierror)
  if (round == 1) print '(a)', 'ready'
  flush (6)
end subroutine

! ---- messages that are under way when a round ends ----

subroutine send_late(number)
  integer, intent(in) :: number
  integer, save :: out(2)
  out = [1000 * number + rank, 1000 * number + rank + 500]
  call MPI_Irecv(late_in(1), 1, MPI_INTEGER, left, 8, copy, late(1), ierror)
  call MPI_Irecv(late_in(2), 1, MPI_INTEGER, MPI_ANY_SOURCE, 9, copy, late(2), ierror)
  call MPI_Isend(out(1), 1, MPI_INTEGER, right, 8, copy, late(3), ierror)
  call send_now(out(2))
end subroutine

subroutine send_now(value)
  integer, intent(in) :: value
  call MPI_Send(value, 1, MPI_INTEGER, right, 9, copy, ierror)
end subroutine

subroutine receive_late(number)
  integer, intent(in) :: number
  integer :: which, seen, places(3), count, i
  STATUS_OF(one)
  STATUSES_OF(some, 3)
  seen = 0
  call MPI_Waitany(3, late, which, one, ierror)
  CHECK(which >= 1 .and. which <= 3 .and. late(which) == MPI_REQUEST_NULL)
  if (which < 3) then
    CHECK(SOURCE_OF(one) == left)
  end if
  seen = ibset(seen, which)
  do while (seen /= 14)
    call MPI_Waitsome(3, late, count, places, some, ierror)
    CHECK(count >= 1 .and. count <= 2)
    do i = 1, count
      seen = ibset(seen, places(i))
      if (places(i) < 3) then
        CHECK(SOURCE_AT(some, i) == left)
      end if
    end do
  end do
  call MPI_Waitany(3, late, which, MPI_STATUS_IGNORE, ierror)
  CHECK(which == MPI_UNDEFINED)
  CHECK(late_in(1) == 1000 * number + left .and. late_in(2) == 1000 * number + left + 500)
end subroutine

! ---- the rest of a round ----

subroutine operations
  integer :: mine(2), best(2), total, pairs(2)
  mine = [mod(rank * 7 + round, ranks), rank]
  call MPI_Allreduce(mine, best, 1, pair, larger_pair, MPI_COMM_WORLD, ierror)
  CHECK(best(1) >= mine(1) .and. mod(best(2) * 7 + round, ranks) == best(1))
  total = rank + round
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, copy, ierror)
  CHECK(total == ranks * (ranks - 1) / 2 + ranks * round)
  call MPI_Allreduce([rank, rank], pairs, 1, MPI_2INTEGER, MPI_MAXLOC, copy, ierror)
  CHECK(pairs(1) == ranks - 1)
end subroutine

subroutine messages
  integer :: value, n
  logical :: flag, is_there
  STATUS_OF(status)
  STATUSES_OF(statuses, 2)
  call MPI_Sendrecv(rank + round, 1, MPI_INTEGER, right, 1, value, 1, MPI_INTEGER, left, 1, copy, status, ierror)
  CHECK(SOURCE_OF(status) == left .and. value == left + round)
  call MPI_Get_count(status, MPI_INTEGER, n, ierror)
  CHECK(n == 1)
  sends(1) = round * 10 + rank
  receives(1) = -1
  call MPI_Startall(2, lasting, ierror)
  call MPI_Waitall(2, lasting, statuses, ierror)
  CHECK(receives(1) == round * 10 + left .and. SOURCE_AT(statuses, 2) == left)
  call MPI_Testall(2, lasting, flag, MPI_STATUSES_IGNORE, ierror)
  CHECK(flag)
  call MPI_Iprobe(MPI_ANY_SOURCE, 4711, copy, is_there, MPI_STATUS_IGNORE, ierror)
  CHECK(.not. is_there)
end subroutine

subroutine vectors
  integer :: counts(0:ranks - 1), places(0:ranks - 1), out(0:ranks - 1), in(0:ranks - 1), i
  DATATYPE :: types(0:ranks - 1)
  REQUEST :: begun
  counts = 1
  places = [(4 * i, i = 0, ranks - 1)]
  types = MPI_INTEGER
  out = [(100 * rank + i + round, i = 0, ranks - 1)]
  call MPI_Alltoallw(out, counts, places, types, in, counts, places, types, copy, ierror)
  CHECK(all(in == [(100 * i + rank + round, i = 0, ranks - 1)]))
  in = -1
  call MPI_Ialltoallw(out, counts, places, types, in, counts, places, types, copy, begun, ierror)
  call MPI_Wait(begun, MPI_STATUS_IGNORE, ierror)
  CHECK(all(in == [(100 * i + rank + round, i = 0, ranks - 1)]))
  call MPI_Alltoallw(MPI_IN_PLACE, counts, places, types, in, counts, places, types, copy, ierror)
  CHECK(all(in == out))
end subroutine

subroutine attributes
  COMM :: again
  DATATYPE :: other
  integer(MPI_ADDRESS_KIND) :: value
  logical :: flag
  call MPI_Comm_dup(copy, again, ierror)
  call MPI_Comm_get_attr(again, key, value, flag, ierror)
  CHECK(flag .and. value == 2_MPI_ADDRESS_KIND**33 + rank + 5)
  deleted = 0
  call MPI_Comm_free(again, ierror)
  CHECK(deleted == 1)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
  CHECK(flag .and. value >= 32767 .and. value < 2_MPI_ADDRESS_KIND**31)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, flag, ierror)
  CHECK(.not. flag)
  call MPI_Type_dup(pair, other, ierror)
  call MPI_Type_get_attr(other, type_key, value, flag, ierror)
  CHECK(flag .and. value == -3)
  call MPI_Type_free(other, ierror)
  errors = 0
  call MPI_Comm_call_errhandler(copy, MPI_ERR_OTHER, ierror)
  CHECK(errors == 1)
end subroutine

subroutine names
  character(MPI_MAX_OBJECT_NAME) :: name
  character(20) :: value
  character(MPI_MAX_ERROR_STRING) :: text
  integer :: n
  logical :: flag
  call MPI_Comm_get_name(copy, name, n, ierror)
  CHECK(n == 8 .and. name == 'the copy')
  value = 'something else'
  call MPI_Info_get(hints, ' key ', 20, value, flag, ierror)
  CHECK(flag .and. value == 'a value')
  call MPI_Info_get(hints, 'other', 20, value, flag, ierror)
  CHECK(.not. flag)
  call MPI_Error_string(MPI_ERR_COMM, text, n, ierror)
  CHECK(n > 0 .and. len_trim(text) == n)
end subroutine

subroutine topologies
  integer :: at(1), sizes(1), in(2), n, all_ranks(ranks), there(ranks), i
  integer :: sources, destinations
  logical :: periods(1), is_weighted
  GROUP :: reversed
  call MPI_Cart_get(grid, 1, sizes, periods, at, ierror)
  CHECK(sizes(1) == ranks .and. periods(1) .and. at(1) == rank)
  call MPI_Dist_graph_neighbors_count(graph, sources, destinations, is_weighted, ierror)
  CHECK(sources == 2 .and. destinations == 2 .and. .not. is_weighted)
  call MPI_Neighbor_allgather(rank * 10 + round, 1, MPI_INTEGER, in, 1, MPI_INTEGER, graph, ierror)
  CHECK(in(1) == left * 10 + round .and. in(2) == right * 10 + round)
  all_ranks = [(ranks - i, i = 1, ranks)]
  call MPI_Group_incl(everybody, ranks, all_ranks, reversed, ierror)
  call MPI_Group_translate_ranks(everybody, ranks, all_ranks, reversed, there, ierror)
  CHECK(all(there == [(i, i = 0, ranks - 1)]))
  call MPI_Group_compare(everybody, reversed, n, ierror)
  CHECK(n == MPI_SIMILAR .or. ranks == 1)
  call MPI_Group_free(reversed, ierror)
end subroutine

subroutine addresses
  integer, target, save :: a, b
  integer(MPI_ADDRESS_KIND) :: places(2)
  integer :: in(2)
  DATATYPE :: both
  a = rank
  b = round
  call MPI_Get_address(a, places(1), ierror)
  call MPI_Get_address(b, places(2), ierror)
  call MPI_Type_create_struct(2, [1, 1], places, [MPI_INTEGER, MPI_INTEGER], both, ierror)
  call MPI_Type_commit(both, ierror)
  call MPI_Sendrecv(MPI_BOTTOM, 1, both, right, 2, in, 2, MPI_INTEGER, left, 2, copy, MPI_STATUS_IGNORE, ierror)
  CHECK(in(1) == left .and. in(2) == round)
  call MPI_Type_free(both, ierror)
end subroutine

subroutine generalised
  REQUEST :: mine
  STATUS_OF(status)
  integer :: n
  queried = 0
  call MPI_Grequest_start(query, free_nothing, cancel_nothing, 6_MPI_ADDRESS_KIND, mine, ierror)
  call MPI_Grequest_complete(mine, ierror)
  call MPI_Wait(mine, status, ierror)
  call MPI_Get_elements(status, MPI_INTEGER, n, ierror)
  CHECK(queried == 1 .and. n == 6 .and. SOURCE_OF(status) == 77)
end subroutine

end program
