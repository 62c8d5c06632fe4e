/* Halo exchange of a 2-D grid of ranks: each computes, exchanges BYTES with its four neighbours, and every tenth step all reduce
 * one double. Prints the seconds of the steps; nothing else of it is timed.   halo [BYTES] [STEPS] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int bytes = argc > 1 ? atoi(argv[1]) : 32768, steps = argc > 2 ? atoi(argv[2]) : 50;
    int ranks, dims[2] = {0, 0}, periods[2] = {1, 1}, neighbour[4];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, dims);
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    for (int d = 0; d < 2; d++)
        MPI_Cart_shift(grid, d, 1, &neighbour[2 * d], &neighbour[2 * d + 1]);
    char *out = calloc(4, bytes), *in = calloc(4, bytes);
    double sum = 0, all, *work = calloc(100000, sizeof *work);
    MPI_Barrier(grid);
    double began = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        MPI_Request requests[8];
        for (int n = 0; n < 4; n++) {
            MPI_Irecv(in + n * bytes, bytes, MPI_BYTE, neighbour[n], n ^ 1, grid, &requests[n]);
            MPI_Isend(out + n * bytes, bytes, MPI_BYTE, neighbour[n], n, grid, &requests[4 + n]);
        }
        for (int i = 0; i < 100000; i++)
            sum += work[i] = work[i] * 0.5 + step;
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
        if (step % 10 == 9)
            MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, grid);
    }
    MPI_Barrier(grid);
    double took = MPI_Wtime() - began;
    int rank;
    MPI_Comm_rank(grid, &rank);
    if (rank == 0)
        printf("seconds %.6f\n", took);
    MPI_Finalize();
    return sum < 0;
}
