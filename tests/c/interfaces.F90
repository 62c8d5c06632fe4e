! (-DLARGE: with large counts, where mpi_f08 has them.)
! The same communication through mpif.h (-DMPIF_H), `use mpi` (-DUSE_MPI) and `use mpi_f08`, which may leave ierror out.
#ifdef LARGE
#define N(x) int(x,MPI_COUNT_KIND)
#else
#define N(x) x
#endif
program interfaces
#ifdef USE_MPI
  use mpi
#elif !defined(MPIF_H)
  use mpi_f08
#endif
  implicit none
#ifdef MPIF_H
  include 'mpif.h'
#endif
  integer :: r, n, ierr, left, right, i
  double precision :: a(8), b(8)
  integer :: c1(64), d1(64), z(64)
#if defined(USE_MPI) || defined(MPIF_H)
  integer :: q(2), st(MPI_STATUS_SIZE), sts(MPI_STATUS_SIZE,2), newcomm, t
#else
  type(MPI_Request) :: q(2)
  type(MPI_Status) :: st, sts(2)
  type(MPI_Comm) :: newcomm
  type(MPI_Datatype) :: t
#endif

  call MPI_INIT(ierr)
  call MPI_COMM_RANK(MPI_COMM_WORLD, r, ierr)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
  left = mod(r+n-1,n); right = mod(r+1,n)
  a = r; b = -1; z = 0
  call MPI_IRECV(b, N(8), MPI_DOUBLE_PRECISION, left, 3, MPI_COMM_WORLD, q(1), ierr)
  call MPI_ISEND(a, N(5), MPI_DOUBLE_PRECISION, right, 3, MPI_COMM_WORLD, q(2), ierr)
  call MPI_WAITALL(2, q, MPI_STATUSES_IGNORE, ierr)
  if (b(1) /= left) call MPI_ABORT(MPI_COMM_WORLD, 4, ierr)
  call MPI_IRECV(b, N(8), MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, q(1), ierr)
  call MPI_SEND(a, N(2), MPI_DOUBLE_PRECISION, right, 4, MPI_COMM_WORLD, ierr)
  call MPI_WAIT(q(1), MPI_STATUS_IGNORE, ierr)
  call MPI_BARRIER(MPI_COMM_WORLD, ierr)
  call MPI_ISEND(a, N(2), MPI_DOUBLE_PRECISION, right, 6, MPI_COMM_WORLD, q(1), ierr)
  call MPI_RECV(b, N(8), MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, st, ierr)
  call MPI_WAIT(q(1), st, ierr)
  call MPI_SENDRECV(a, N(3), MPI_DOUBLE_PRECISION, right, 7, b, N(8), MPI_DOUBLE_PRECISION, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_ALLREDUCE(MPI_IN_PLACE, a, N(8), MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
#if defined(USE_MPI) || defined(MPIF_H)
  call MPI_BCAST(a, N(4), MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
#else
  call MPI_BCAST(a, N(4), MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
#endif
  c1 = 1
  do i = 1, n
    d1(i) = i-1
  end do
  call MPI_ALLTOALLV(MPI_IN_PLACE, c1, d1, MPI_INTEGER, z, c1, d1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call MPI_ALLTOALLV(z, c1, d1, MPI_INTEGER, z(33), c1, d1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call MPI_COMM_SPLIT(MPI_COMM_WORLD, mod(r,2), r, newcomm, ierr)
  call MPI_BARRIER(newcomm, ierr)
  call MPI_COMM_FREE(newcomm, ierr)
  call MPI_TYPE_VECTOR(2, 1, 3, MPI_DOUBLE_PRECISION, t, ierr)
  call MPI_TYPE_COMMIT(t, ierr)
  call MPI_BCAST(a, 1, t, 0, MPI_COMM_WORLD, ierr)
  call MPI_TYPE_FREE(t, ierr)
  call MPI_RECV_INIT(b, N(8), MPI_DOUBLE_PRECISION, left, 9, MPI_COMM_WORLD, q(1), ierr)
  call MPI_SEND_INIT(a, N(8), MPI_DOUBLE_PRECISION, right, 9, MPI_COMM_WORLD, q(2), ierr)
  call MPI_STARTALL(2, q, ierr)
  call MPI_WAITALL(2, q, sts, ierr)
  call MPI_REQUEST_FREE(q(1), ierr)
  call MPI_REQUEST_FREE(q(2), ierr)
  call MPI_FINALIZE(ierr)
  if (r == 0) print *, 'fine'
end program
