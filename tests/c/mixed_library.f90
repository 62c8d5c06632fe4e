! Wildcards without a status, and sums in place.
subroutine in_fortran(total)
  use mpi
  implicit none
  integer, intent(out) :: total
  integer :: rank, ranks, right, sent, got, ierror, request, requests(2)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  right = mod(rank + 1, ranks)
  sent = rank
  call MPI_Isend(sent, 1, MPI_INTEGER, right, 7, MPI_COMM_WORLD, request, ierror)
  call MPI_Recv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call MPI_Irecv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, requests(1), ierror)
  call MPI_Isend(sent, 1, MPI_INTEGER, right, 8, MPI_COMM_WORLD, requests(2), ierror)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
  total = got
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
end subroutine in_fortran
