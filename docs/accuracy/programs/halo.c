/* Halo exchange of a 2-D grid of ranks: each computes, exchanges BYTES with its four neighbours, and every tenth step all reduce
 * one double. Prints the seconds of the steps; nothing else of it is timed.   halo [BYTES] [STEPS] [messages | put | neighbour]
 * messages (the default): sends and receives; put: MPI_Put between two fences; neighbour: MPI_Ineighbor_alltoall. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void compute(double *work, double *sum, int step)
{
    for (int i = 0; i < 100000; i++)
        *sum += work[i] = work[i] * 0.5 + step;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int bytes = argc > 1 ? atoi(argv[1]) : 32768, steps = argc > 2 ? atoi(argv[2]) : 50;
    int puts = argc > 3 && strcmp(argv[3], "put") == 0, collective = argc > 3 && strcmp(argv[3], "neighbour") == 0;
    int ranks, dims[2] = {0, 0}, periods[2] = {1, 1}, neighbour[4];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, dims);
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    for (int d = 0; d < 2; d++)
        MPI_Cart_shift(grid, d, 1, &neighbour[2 * d], &neighbour[2 * d + 1]);
    char *out = calloc(4, bytes), *in = calloc(4, bytes);
    double sum = 0, all, *work = calloc(100000, sizeof *work);
    MPI_Win window = MPI_WIN_NULL;
    if (puts) {
        MPI_Win_create(in, 4 * bytes, 1, MPI_INFO_NULL, grid, &window);
        MPI_Win_fence(0, window);
    }
    MPI_Barrier(grid);
    double began = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        MPI_Request requests[8];
        int pending = 0;
        for (int n = 0; puts && n < 4; n++)
            MPI_Put(out + n * bytes, bytes, MPI_BYTE, neighbour[n], (n ^ 1) * bytes, bytes, MPI_BYTE, window);
        if (collective)
            MPI_Ineighbor_alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, grid, &requests[pending++]);
        for (int n = 0; !puts && !collective && n < 4; n++) {
            MPI_Irecv(in + n * bytes, bytes, MPI_BYTE, neighbour[n], n ^ 1, grid, &requests[pending++]);
            MPI_Isend(out + n * bytes, bytes, MPI_BYTE, neighbour[n], n, grid, &requests[pending++]);
        }
        compute(work, &sum, step);
        MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
        if (puts)
            MPI_Win_fence(0, window);
        if (step % 10 == 9)
            MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, grid);
    }
    MPI_Barrier(grid);
    double took = MPI_Wtime() - began;
    int rank;
    MPI_Comm_rank(grid, &rank);
    if (rank == 0)
        printf("seconds %.6f\n", took);
    if (puts)
        MPI_Win_free(&window);
    MPI_Finalize();
    return sum < 0;
}
