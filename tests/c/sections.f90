! Broadcasts an array, then every other element of one.
program section
  use mpi_f08
  integer :: rank, a(20)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  a = rank
  call MPI_Bcast(a, 20, MPI_INTEGER, 0, MPI_COMM_WORLD)
  if (any(a /= 0)) stop 7
  a = rank
  call MPI_Bcast(a(1:20:2), 10, MPI_INTEGER, 0, MPI_COMM_WORLD)
  if (any(a(1:20:2) /= 0) .or. any(a(2:20:2) /= rank)) stop 8
  if (rank == 0) print *, 'sections: right'
  call MPI_Finalize()
end program
