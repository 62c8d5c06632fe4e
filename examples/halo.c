/* A stencil code in miniature: a periodic 2-D grid of ranks; in each step every rank exchanges its borders with four
 * neighbours while it updates the inner points, and every few steps all agree on the residual.
 *
 *     mpicc -O2 -o halo examples/halo.c -lm
 *     vef run -n 4 -- ./halo [steps] [points a side of each rank] [a rank that computes three times as long]
 *
 * The capture that `vef demo` carries (cli/demo/) was made by this program on 4 ranks, 12 steps, 256 points.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int ranks, rank, dims[2] = { 0, 0 }, periods[2] = { 1, 1 };
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int steps = argc > 1 ? atoi(argv[1]) : 12, n = argc > 2 ? atoi(argv[2]) : 256, slow = argc > 3 ? atoi(argv[3]) : -1;
    MPI_Bcast(&steps, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);

    MPI_Comm grid;
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
    MPI_Comm_rank(grid, &rank);
    int up, down, left, right;
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);

    int width = n + 2;
    double *now = calloc((size_t)width * width, sizeof *now), *next = calloc((size_t)width * width, sizeof *next);
    if (!now || !next) MPI_Abort(MPI_COMM_WORLD, 1);
    now[width + 1] = rank + 1.0;
    MPI_Datatype column;
    MPI_Type_vector(n, 1, width, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);

    double residual = 0;
    for (int step = 0; step < steps; step++) {
        MPI_Request requests[8];
        MPI_Irecv(now + 1, n, MPI_DOUBLE, up, 0, grid, &requests[0]);
        MPI_Irecv(now + (n + 1) * width + 1, n, MPI_DOUBLE, down, 1, grid, &requests[1]);
        MPI_Irecv(now + width, 1, column, left, 2, grid, &requests[2]);
        MPI_Irecv(now + width + n + 1, 1, column, right, 3, grid, &requests[3]);
        MPI_Isend(now + n * width + 1, n, MPI_DOUBLE, down, 0, grid, &requests[4]);
        MPI_Isend(now + width + 1, n, MPI_DOUBLE, up, 1, grid, &requests[5]);
        MPI_Isend(now + width + n, 1, column, right, 2, grid, &requests[6]);
        MPI_Isend(now + width + 1, 1, column, left, 3, grid, &requests[7]);
        for (int sweep = rank == slow ? 3 : 1; sweep > 0; sweep--)
            for (int i = 2; i < n; i++)
                for (int j = 2; j < n; j++)
                    next[i * width + j] = 0.25 * (now[(i - 1) * width + j] + now[(i + 1) * width + j] + now[i * width + j - 1] + now[i * width + j + 1]);
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
        double change = 0;
        for (int i = 1; i <= n; i++)
            for (int j = 1; j <= n; j++) {
                if (i == 1 || i == n || j == 1 || j == n)
                    next[i * width + j] = 0.25 * (now[(i - 1) * width + j] + now[(i + 1) * width + j] + now[i * width + j - 1] + now[i * width + j + 1]);
                change += fabs(next[i * width + j] - now[i * width + j]);
            }
        double *swap = now;
        now = next;
        next = swap;
        if (step % 4 == 3) MPI_Allreduce(&change, &residual, 1, MPI_DOUBLE, MPI_SUM, grid);
    }
    if (rank == 0) printf("residual %.6e after %d steps on %d ranks\n", residual, steps, ranks);
    MPI_Type_free(&column);
    MPI_Comm_free(&grid);
    free(now);
    free(next);
    MPI_Finalize();
    return 0;
}
