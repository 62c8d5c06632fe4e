/* Broadcasts, a ring, a reduction in halves, phases: for tests of the tool chain. */
#include <mpi.h>
#include "vef_phase.h"

int main(int argc, char **argv)
{
    int rank, size, value = 7, got, left, right, sum;
    MPI_Request request;
    MPI_Comm half;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    MPI_Pcontrol(1);

    if (rank != 0)
        value = 0;
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (value != 7)
        MPI_Abort(MPI_COMM_WORLD, 3);

    vef_phase_begin("ring");
    MPI_Irecv(&got, 1, MPI_INT, left, 0, MPI_COMM_WORLD, &request);
    MPI_Send(&rank, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (got != left)
        MPI_Abort(MPI_COMM_WORLD, 4);
    mini_annotate_phase_start("anybody");
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &request);
    MPI_Send(&rank, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mini_annotate_phase_end("anybody");
    vef_phase_end("ring");

    MPI_Pcontrol(3);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
    MPI_Comm_free(&half);
    MPI_Pcontrol(-3);
    MPI_Finalize();
    return 0;
}
