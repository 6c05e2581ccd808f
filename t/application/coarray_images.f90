! Images of Coarray Fortran, which gfortran's OpenCoarrays makes of ranks with windows, locks and atomic operations of
! MPI. In each round an image puts numbers into the next one, posts an event there, counts under a lock of the first
! image and sums up; what it finds must be of this round. As mpi_job.c: prints "ready", shows that it has come back by a
! symbolic link round.RANK, and ends with "ok" when there is a file `go`.
program images
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env
  implicit none

  interface
    integer(c_int) function symlink(target, name) bind(c)
      import
      character(kind=c_char), intent(in) :: target(*), name(*)
    end function
  end interface

  integer, save :: held[*] = 0, ended[*] = 0
  integer(atomic_int_kind), save :: tickets[*] = 0
  type(lock_type), save :: guard[*]
  type(event_type), save :: posted[*]
  integer, allocatable :: box(:)[:]
  integer :: me, ranks, before, next, round, total
  logical :: told

  me = this_image()
  ranks = num_images()
  next = mod(me, ranks) + 1
  before = mod(me + ranks - 2, ranks) + 1
  allocate(box(1000)[*])
  sync all
  print '(a)', 'ready'
  flush(output_unit)

  round = 0
  told = .false.
  do while (.not. told)
    round = round + 1
    box(:)[next] = round * ranks + me
    sync memory
    event post(posted[next])
    event wait(posted)
    call expect('numbers', count(box == round * ranks + before), size(box))

    call atomic_add(tickets[1], me)
    lock(guard[1])
    held[1] = held[1] + me
    unlock(guard[1])
    sync all
    call expect('counted under the lock', held[1], round * ranks * (ranks + 1) / 2)
    call expect('counted atomically', int(tickets), merge(held, 0, me == 1))

    total = round + me
    call co_sum(total)
    call expect('sum', total, round * ranks + ranks * (ranks + 1) / 2)
    call show_round
    if (me == 1) inquire(file='go', exist=told)
    ended = merge(1, 0, told)
    call co_broadcast(ended, 1)
    told = ended == 1
  end do
  print '(a)', 'ok'

contains

  subroutine expect(what, found, expected)
    character(*), intent(in) :: what
    integer, intent(in) :: found, expected

    if (found == expected) return
    print *, 'image', me, 'round', round, what, found, 'not', expected
    flush(output_unit)
    error stop
  end subroutine

  ! Where the test has removed the link.
  subroutine show_round
    character(20) :: name, value
    integer :: there

    write (name, '("round.", i0)') me - 1
    write (value, '(i0)') round
    there = symlink(trim(value) // c_null_char, trim(name) // c_null_char)
  end subroutine
end program
