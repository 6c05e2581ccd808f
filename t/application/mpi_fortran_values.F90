! A program in Fortran of Open MPI, two ranks: values that Fortran and C have each in its own way, MPI-1's functions, and
! programs that are spawned. Prints "done".
#define CHECK(what) call check(what, __LINE__)

module seen
  include 'mpif.h'
  integer :: key, errors = 0, copies = 0
contains

subroutine check(is_so, line)
  logical :: is_so
  integer :: line, ierror
  if (is_so) return
  print '(a,i0)', 'line ', line
  flush (6)
  call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
end subroutine

! MPI-1's, with INTEGERs
subroutine copy(comm, k, extra, was, becomes, flag, ierror)
  integer :: comm, k, extra, was, becomes, ierror
  logical :: flag
  CHECK(k == key .and. extra == -7)
  becomes = was - 1
  flag = was /= 100
  copies = copies + 1
  ierror = MPI_SUCCESS
end subroutine

subroutine count_file_error(file, code)
  integer :: file, code, class, ierror
  call MPI_Error_class(code, class, ierror)
  CHECK(file == MPI_FILE_NULL .and. class == MPI_ERR_NO_SUCH_FILE)
  errors = errors + 1
end subroutine
end module

program main
  use, intrinsic :: iso_c_binding
  use seen
  implicit none
  interface
    function comm_of(number) bind(C, name='MPI_Comm_f2c')
      use, intrinsic :: iso_c_binding
      integer(c_int), value :: number
      type(c_ptr) :: comm_of
    end function
    function get_in_c(comm, key, value, flag) bind(C, name='MPI_Comm_get_attr')
      use, intrinsic :: iso_c_binding
      type(c_ptr), value :: comm
      integer(c_int), value :: key
      type(c_ptr) :: value
      integer(c_int) :: flag, get_in_c
    end function
    function set_in_c(comm, key, value) bind(C, name='MPI_Comm_set_attr')
      use, intrinsic :: iso_c_binding
      type(c_ptr), value :: comm, value
      integer(c_int), value :: key
      integer(c_int) :: set_in_c
    end function
  end interface
  integer :: ierror, rank, parent

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_get_parent(parent, ierror)
  if (parent /= MPI_COMM_NULL) call be_spawned
  call both_languages
  call of_integers
  call datatypes
  call types_by_size
  call graph
  call library_in_c
  call memory
  call errors_of_files
  if (command_argument_count() == 1) call spawn
  print '(a)', 'done'
  call MPI_Finalize(ierror)

contains

! What one language sets, the other one sees: C an address, Fortran the value.
subroutine both_languages
  integer(MPI_ADDRESS_KIND) :: value
  integer(MPI_ADDRESS_KIND), pointer :: wide
  integer, pointer :: narrow
  integer, target :: mine = 5
  type(c_ptr) :: address
  integer :: k, flag, small
  logical :: is_set
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, k, 0_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(MPI_COMM_SELF, k, 2_MPI_ADDRESS_KIND**40 + 1, ierror)
  CHECK(get_in_c(comm_of(MPI_COMM_SELF), k, address, flag) == 0 .and. flag == 1)
  call c_f_pointer(address, wide)
  CHECK(wide == 2_MPI_ADDRESS_KIND**40 + 1)
  call MPI_Attr_put(MPI_COMM_SELF, k, -9, ierror)
  CHECK(get_in_c(comm_of(MPI_COMM_SELF), k, address, flag) == 0 .and. flag == 1)
  call c_f_pointer(address, narrow)
  CHECK(narrow == -9)
  call MPI_Comm_get_attr(MPI_COMM_SELF, k, value, is_set, ierror)
  CHECK(is_set .and. value == -9)
  CHECK(set_in_c(comm_of(MPI_COMM_SELF), k, c_loc(mine)) == 0)
  call MPI_Comm_get_attr(MPI_COMM_SELF, k, value, is_set, ierror)
  CHECK(is_set .and. value == transfer(c_loc(mine), value))
  call MPI_Attr_get(MPI_COMM_SELF, k, small, is_set, ierror)
  CHECK(is_set .and. small == transfer(c_loc(mine), small))
  call MPI_Comm_delete_attr(MPI_COMM_SELF, k, ierror)
  call MPI_Comm_free_keyval(k, ierror)
end subroutine

subroutine of_integers
  integer :: comm, again, value
  logical :: flag
  call MPI_Keyval_create(copy, MPI_NULL_DELETE_FN, key, -7, ierror)
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierror)
  call MPI_Attr_put(comm, key, -3, ierror)
  call MPI_Comm_dup(comm, again, ierror)
  call MPI_Attr_get(again, key, value, flag, ierror)
  CHECK(flag .and. value == -4 .and. copies == 1)
  call MPI_Comm_free(again, ierror)
  call MPI_Attr_put(comm, key, 100, ierror)
  call MPI_Comm_dup(comm, again, ierror)
  call MPI_Attr_get(again, key, value, flag, ierror)
  CHECK(.not. flag)
  call MPI_Comm_free(again, ierror)
  call MPI_Comm_free(comm, ierror)
  call MPI_Keyval_free(key, ierror)
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
  CHECK(flag .and. value >= 32767)
end subroutine

subroutine datatypes
  integer :: made, extent, bound, ints, addresses, types, how, numbers(9), parts(4), size
  integer(MPI_ADDRESS_KIND) :: places(4)
  character(40) :: packed
  integer(MPI_ADDRESS_KIND) :: place
  call MPI_Type_struct(2, (/ 1, 2 /), (/ 4, 16 /), (/ MPI_INTEGER, MPI_DOUBLE_PRECISION /), made, ierror)
  call MPI_Type_extent(made, extent, ierror)
  CHECK(extent == 28 .or. extent == 32)
  call MPI_Type_lb(made, bound, ierror)
  CHECK(bound == 4)
  call MPI_Type_ub(made, bound, ierror)
  CHECK(bound == 4 + extent)
  call MPI_Type_get_envelope(made, ints, addresses, types, how, ierror)
  CHECK(how == MPI_COMBINER_STRUCT .and. ints == 3 .and. types == 2)
  ! Of more than there are, Open MPI 4.1 looks at handles that are not there.
  call MPI_Type_get_contents(made, ints, addresses, types, numbers, places, parts, ierror)
  CHECK(numbers(3) == 2 .and. places(2) == 16 .and. parts(1) == MPI_INTEGER .and. parts(2) == MPI_DOUBLE_PRECISION)
  call MPI_Type_free(made, ierror)
  call MPI_Type_hvector(2, 1, 12, MPI_INTEGER, made, ierror)
  call MPI_Type_extent(made, extent, ierror)
  CHECK(extent == 16)
  call MPI_Type_free(made, ierror)
  call MPI_Type_hindexed(2, (/ 1, 1 /), (/ 0, 20 /), MPI_INTEGER, made, ierror)
  call MPI_Type_extent(made, extent, ierror)
  CHECK(extent == 24)
  call MPI_Type_free(made, ierror)
  call MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, made, ierror)
  CHECK(made == MPI_COMPLEX16)
  call MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 2, made, ierror)
  CHECK(made == MPI_INTEGER2)
  call MPI_Type_create_f90_real(12, MPI_UNDEFINED, made, ierror)
  call MPI_Type_size(made, size, ierror)
  CHECK(size == 8)
  place = 0
  call MPI_Pack_external('external32   ', 258, 1, MPI_INTEGER, packed, 40_MPI_ADDRESS_KIND, place, ierror)
  CHECK(place == 4 .and. packed(3:4) == char(1) // char(2))
  call MPI_Sizeof((/ 1d0, 2d0 /), size, ierror)
  CHECK(size == 8)
end subroutine

! The handles are those that programs compare with, and of a size that no type has there is none.
subroutine types_by_size
  integer :: made
  call MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, made, ierror)
  CHECK(made == MPI_INTEGER)
  call MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 8, made, ierror)
  CHECK(made == MPI_INTEGER8)
  call MPI_Type_match_size(MPI_TYPECLASS_REAL, 4, made, ierror)
  CHECK(made == MPI_REAL)
  call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, made, ierror)
  CHECK(made == MPI_REAL8)
  call MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 8, made, ierror)
  CHECK(made == MPI_COMPLEX)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
  call no_type(MPI_TYPECLASS_INTEGER, 16)
  call no_type(MPI_TYPECLASS_INTEGER, 3)
  call no_type(MPI_TYPECLASS_REAL, 32)
  call no_type(77, 4)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierror)
end subroutine

subroutine no_type(class, size)
  integer :: class, size, made
  call MPI_Type_match_size(class, size, made, ierror)
  print '(3(a,i0))', 'class ', class, ' of ', size, ' bytes: error ', ierror
  CHECK(ierror /= MPI_SUCCESS)
end subroutine

! Its indexes are sums, and no positions.
subroutine graph
  integer :: ring, indexes(2), edges(2)
  call MPI_Graph_create(MPI_COMM_WORLD, 2, (/ 1, 2 /), (/ 1, 0 /), .false., ring, ierror)
  call MPI_Graph_get(ring, 2, 2, indexes, edges, ierror)
  CHECK(all(indexes == (/ 1, 2 /)) .and. all(edges == (/ 1, 0 /)))
  call MPI_Comm_free(ring, ierror)
end subroutine

subroutine library_in_c
  integer, external :: ignored
  integer :: requests(16), from(16), statuses(MPI_STATUS_SIZE, 16), i
  call begin(requests, from)
  call wait_for_all(16, requests, MPI_STATUSES_IGNORE)
  call begin(requests, from)
  call wait_for_all(16, requests, statuses)
  CHECK(all(statuses(MPI_TAG, :) == (/ (i, i = 1, 16) /)) .and. all(statuses(MPI_SOURCE, :) == 1 - rank))
  CHECK(ignored(MPI_STATUS_IGNORE) == 1 .and. ignored(MPI_STATUSES_IGNORE) == 2 .and. ignored(statuses) == 0)
end subroutine

subroutine begin(requests, from)
  integer :: requests(16), from(16), i
  do i = 1, 16
    call MPI_Irecv(from(i), 1, MPI_INTEGER, 1 - rank, i, MPI_COMM_WORLD, requests(i), ierror)
  end do
  do i = 1, 16
    call MPI_Send(rank, 1, MPI_INTEGER, 1 - rank, i, MPI_COMM_WORLD, ierror)
  end do
end subroutine

subroutine memory
  type(c_ptr) :: base
  integer, pointer :: words(:)
  integer :: window, value
  integer(MPI_ADDRESS_KIND) :: told
  logical :: flag
  call MPI_Alloc_mem(8_MPI_ADDRESS_KIND, MPI_INFO_NULL, base, ierror)
  call c_f_pointer(base, words, (/ 2 /))
  words = 7
  call MPI_Free_mem(words, ierror)
  call MPI_Win_allocate(8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, window, ierror)
  call c_f_pointer(base, words, (/ 2 /))
  words = 10 * rank
  call MPI_Win_get_attr(window, MPI_WIN_SIZE, told, flag, ierror)
  CHECK(flag .and. told == 8)
  call MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, told, flag, ierror)
  CHECK(flag .and. told == 4)
  call MPI_Win_get_attr(window, MPI_WIN_BASE, told, flag, ierror)
  CHECK(flag .and. told == transfer(base, told))
  call MPI_Win_fence(0, window, ierror)
  call MPI_Get(value, 1, MPI_INTEGER, 1 - rank, 1_MPI_ADDRESS_KIND, 1, MPI_INTEGER, window, ierror)
  call MPI_Win_fence(0, window, ierror)
  CHECK(value == 10 * (1 - rank))
  call MPI_Win_free(window, ierror)
  CHECK(window == MPI_WIN_NULL)
end subroutine

subroutine errors_of_files
  integer :: handler, file, class
  call MPI_File_create_errhandler(count_file_error, handler, ierror)
  call MPI_File_set_errhandler(MPI_FILE_NULL, handler, ierror)
  call MPI_File_open(MPI_COMM_SELF, ' not there  ', MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierror)
  call MPI_Error_class(ierror, class, ierror)
  CHECK(class == MPI_ERR_NO_SUCH_FILE .and. errors == 1)
  call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN, ierror)
end subroutine

! One program twice, with arguments of its own each.
subroutine spawn
  character(200) :: commands(2)
  character(12) :: arguments(2, 3)
  ! What but the root gives is not looked at, and Open MPI reads no more than there is.
  integer, parameter :: many = 60000
  integer, allocatable :: infos(:)
  character(1), allocatable :: none(:)
  integer :: children, codes(2), total
  call get_command_argument(0, commands(1))
  commands(2) = commands(1)
  arguments(1, :) = (/ 'first       ', ' two words  ', '            ' /)
  arguments(2, :) = (/ 'second      ', '            ', '            ' /)
  if (rank == 0) then
    call MPI_Comm_spawn_multiple(2, commands, arguments, (/ 1, 1 /), (/ MPI_INFO_NULL, MPI_INFO_NULL /), 0, &
      MPI_COMM_WORLD, children, codes, ierror)
  else
    allocate (infos(many), none(many))
    infos = MPI_INFO_NULL
    none = ' '
    call MPI_Comm_spawn_multiple(many, none, MPI_ARGVS_NULL, infos, infos, 0, MPI_COMM_WORLD, children, codes, ierror)
  end if
  CHECK(all(codes == MPI_SUCCESS))
  total = 0
  call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, children, ierror)
  CHECK(total == 2)
  call MPI_Comm_disconnect(children, ierror)
  call MPI_Comm_spawn(commands(1), MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, &
    MPI_ERRCODES_IGNORE, ierror)
  call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, children, ierror)
  CHECK(total == 0)
  call MPI_Comm_disconnect(children, ierror)
end subroutine

subroutine be_spawned
  character(200) :: argument
  integer :: total, value = 0
  if (command_argument_count() > 0) then
    value = 1
    call get_command_argument(1, argument)
    CHECK(argument == merge('first ', 'second', rank == 0))
    CHECK(command_argument_count() == 2 - rank)
  end if
  if (value == 1 .and. rank == 0) then
    call get_command_argument(2, argument)
    CHECK(argument == 'two words')
  end if
  call MPI_Allreduce(value, total, 1, MPI_INTEGER, MPI_SUM, parent, ierror)
  CHECK(total == 2)
  call MPI_Comm_disconnect(parent, ierror)
  call MPI_Finalize(ierror)
  stop
end subroutine

end program
