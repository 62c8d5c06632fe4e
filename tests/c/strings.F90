! Calls that Fortran makes in its own way (strings, callbacks, memory, a section with gaps), through mpif.h (-DMPIF_H), `use mpi`
! (-DUSE_MPI) and `use mpi_f08`: what they do is checked here, what tools see of them elsewhere.
#if defined(USE_MPI) || defined(MPIF_H)
#define TYPE(name) integer
#else
#define TYPE(name) type(name)
#endif
subroutine greatest(in, inout, length, datatype)
#if defined(USE_MPI) || defined(MPIF_H)
  integer :: length, datatype, in(length), inout(length)
  inout = max(in, inout)
#else
  use, intrinsic :: iso_c_binding
  use mpi_f08
  type(c_ptr), value :: in, inout
  integer :: length
  type(MPI_Datatype) :: datatype
  integer, pointer :: a(:), b(:)
  call c_f_pointer(in, a, [length])
  call c_f_pointer(inout, b, [length])
  b = max(a, b)
#endif
end subroutine

program strings
#ifdef USE_MPI
  use mpi
#elif !defined(MPIF_H)
  use mpi_f08
#endif
  implicit none
#ifdef MPIF_H
  include 'mpif.h'
#endif
  external :: greatest
  integer :: r, n, ierr, length, window(4), x, y
  integer(MPI_ADDRESS_KIND) :: bytes
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=20) :: file
  double precision :: a(8), b(4), c(4,4)
  logical :: flag
  TYPE(MPI_Info) :: info
  TYPE(MPI_Op) :: op
  TYPE(MPI_File) :: fh
  TYPE(MPI_Win) :: win
  TYPE(MPI_Request) :: q

  call MPI_INIT(ierr)
  call MPI_COMM_RANK(MPI_COMM_WORLD, r, ierr)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
  call MPI_COMM_SET_NAME(MPI_COMM_WORLD, 'a world  ', ierr)
  call MPI_COMM_GET_NAME(MPI_COMM_WORLD, name, length, ierr)
  if (name /= 'a world' .or. length /= 7) call MPI_ABORT(MPI_COMM_WORLD, 4, ierr)
  call MPI_INFO_CREATE(info, ierr)
  call MPI_INFO_SET(info, 'key ', 'some value', ierr)
  call MPI_INFO_GET(info, 'key', 20, file, flag, ierr)
  if (file /= 'some value' .or. .not. flag) call MPI_ABORT(MPI_COMM_WORLD, 5, ierr)
  call MPI_OP_CREATE(greatest, .true., op, ierr)
  x = 10 + r
  call MPI_ALLREDUCE(x, y, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
  if (y /= 9 + n) call MPI_ABORT(MPI_COMM_WORLD, 6, ierr)
  call MPI_OP_FREE(op, ierr)
  file = 'strings.data'
  call MPI_FILE_OPEN(MPI_COMM_WORLD, file, MPI_MODE_CREATE + MPI_MODE_RDWR, info, fh, ierr)
  call MPI_FILE_CLOSE(fh, ierr)
  call MPI_INFO_FREE(info, ierr)
  bytes = 16
  window = -1
  call MPI_WIN_CREATE(window, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_WIN_FENCE(0, win, ierr)
  bytes = 2
  if (r == 0) call MPI_PUT(y, 1, MPI_INTEGER, n - 1, bytes, 1, MPI_INTEGER, win, ierr)
  call MPI_WIN_FENCE(0, win, ierr)
  if (r == n - 1 .and. window(3) /= y) call MPI_ABORT(MPI_COMM_WORLD, 7, ierr)
  call MPI_WIN_FREE(win, ierr)
  a = [1, 2, 3, 4, 5, 6, 7, 8]
  call MPI_IRECV(b, 4, MPI_DOUBLE_PRECISION, r, 1, MPI_COMM_WORLD, q, ierr)
  call MPI_SEND(a(2:8:2), 4, MPI_DOUBLE_PRECISION, r, 1, MPI_COMM_WORLD, ierr)
  call MPI_WAIT(q, MPI_STATUS_IGNORE, ierr)
  if (any(b /= a(2:8:2))) call MPI_ABORT(MPI_COMM_WORLD, 8, ierr)
  c = reshape([(dble(x), x = 1, 16)], [4,4])
  call MPI_SENDRECV(c(:,2:3), 8, MPI_DOUBLE_PRECISION, r, 2, a, 8, MPI_DOUBLE_PRECISION, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  if (any(a /= [5, 6, 7, 8, 9, 10, 11, 12])) call MPI_ABORT(MPI_COMM_WORLD, 9, ierr)
  call MPI_SENDRECV(c(2:3,:), 8, MPI_DOUBLE_PRECISION, r, 2, a, 8, MPI_DOUBLE_PRECISION, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  if (any(a /= [2, 3, 6, 7, 10, 11, 14, 15])) call MPI_ABORT(MPI_COMM_WORLD, 10, ierr)
  if (r == 0) print '(a)', 'fine'
  call MPI_FINALIZE(ierr)
end program
