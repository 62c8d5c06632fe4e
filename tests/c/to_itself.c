/* Each rank sends a message to itself by MPI_Sendrecv, and one to the next rank; a barrier. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size, out[3] = {0}, in[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(out, 3, MPI_INT, rank, 1, in, 3, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 1, MPI_INT, (rank + 1) % size, 1, in, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
