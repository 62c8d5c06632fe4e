/* Three kernels whose messages are those of NAS CG, MG and LU; ranks must be a power of two. Some of them send to themselves.
 *   transpose [N] [STEPS]   grid of ranks, as wide as high or twice: sums of vectors along rows, then an exchange with the
 *                           rank across the diagonal, which for ranks on it is the rank itself
 *   vcycle    [N] [STEPS]   N^3 points, halved level by level and back; each level exchanges six periodic faces, one dimension
 *                           after the other; where the grid of ranks has one rank in a dimension, with itself
 *   wavefront [N] [STEPS]   N planes, each computed when the rows of its western and northern neighbours have come */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static double *work, sum;

static void compute(int points)
{
    for (int i = 0; i < points; i++)
        sum += work[i] = work[i] * 0.5 + 1;
}

static void transpose(int n, int steps)
{
    int rows = 1;
    while (rows * rows * 4 <= ranks)
        rows *= 2;
    int columns = ranks / rows, row = rank / columns, column = rank % columns, wide = columns / rows;
    int across = wide * (column / wide * rows + row) + column % wide, part = n / columns;
    double *out = calloc(n, sizeof *out), *in = calloc(n, sizeof *in), all;
    for (int step = 0; step < steps; step++) {
        MPI_Request request;
        compute(n);
        for (int bit = 1; bit < columns; bit *= 2) {
            int partner = row * columns + (column ^ bit);
            MPI_Irecv(in, part, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD, &request);
            MPI_Send(out, part, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Irecv(in, part, MPI_DOUBLE, across, 1, MPI_COMM_WORLD, &request);
        MPI_Send(out, part, MPI_DOUBLE, across, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void faces(MPI_Comm grid, const int *dims, int n)
{
    static double out[2][1 << 16], in[2][1 << 16];
    int size[3] = {n / dims[0], n / dims[1], n / dims[2]};
    for (int d = 0; d < 3; d++) {
        int count = size[(d + 1) % 3] * size[(d + 2) % 3], low, high;
        MPI_Request requests[2];
        MPI_Cart_shift(grid, d, 1, &low, &high);
        MPI_Irecv(in[0], count, MPI_DOUBLE, low, 0, grid, &requests[0]);
        MPI_Irecv(in[1], count, MPI_DOUBLE, high, 1, grid, &requests[1]);
        MPI_Send(out[0], count, MPI_DOUBLE, high, 0, grid);
        MPI_Send(out[1], count, MPI_DOUBLE, low, 1, grid);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    compute(size[0] * size[1] * size[2]);
}

static void vcycle(int n, int steps)
{
    int dims[3] = {0}, periods[3] = {1, 1, 1};
    MPI_Comm grid;
    MPI_Dims_create(ranks, 3, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid);
    for (int step = 0; step < steps; step++) {
        double all;
        for (int level = n; level > dims[0]; level /= 2)
            faces(grid, dims, level);
        for (int level = 2 * dims[0]; level <= n; level *= 2)
            faces(grid, dims, level);
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, grid);
    }
}

static void wavefront(int n, int steps)
{
    int dims[2] = {0}, periods[2] = {0, 0}, north, south, west, east;
    MPI_Comm grid;
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_shift(grid, 0, 1, &north, &south);
    MPI_Cart_shift(grid, 1, 1, &west, &east);
    double *row = calloc(5 * n, sizeof *row);
    for (int step = 0; step < steps; step++)
        for (int way = 0; way < 2; way++) {
            for (int plane = 0; plane < n; plane++) {
                MPI_Recv(row, 5 * n / dims[1], MPI_DOUBLE, way ? south : north, 0, grid, MPI_STATUS_IGNORE);
                MPI_Recv(row, 5 * n / dims[0], MPI_DOUBLE, way ? east : west, 0, grid, MPI_STATUS_IGNORE);
                compute(5 * n * n / ranks);
                MPI_Send(row, 5 * n / dims[1], MPI_DOUBLE, way ? north : south, 0, grid);
                MPI_Send(row, 5 * n / dims[0], MPI_DOUBLE, way ? west : east, 0, grid);
            }
        }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *kernel = argc > 1 ? argv[1] : "transpose";
    int n = argc > 2 ? atoi(argv[2]) : 64, steps = argc > 3 ? atoi(argv[3]) : 10;
    work = calloc(1 << 22, sizeof *work);
    if (!strcmp(kernel, "transpose"))
        transpose(n, steps);
    else if (!strcmp(kernel, "vcycle"))
        vcycle(n, steps);
    else
        wavefront(n, steps);
    MPI_Finalize();
    return sum < 0;
}
