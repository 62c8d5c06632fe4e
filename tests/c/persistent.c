/* Persistent transfers: each rank sends ten numbers to its right-hand neighbour, three times with one request. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size, out[10], in[10];
    MPI_Request q[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Recv_init(in, 10, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, q);
    MPI_Send_init(out, 10, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, q + 1);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 10; i++) out[i] = rank + round * i;
        MPI_Startall(2, q);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(q);
    MPI_Request_free(q + 1);
    MPI_Send_init(out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, q);
    MPI_Start(q);
    MPI_Wait(q, MPI_STATUS_IGNORE);
    MPI_Request_free(q);
    MPI_Finalize();
    return 0;
}
