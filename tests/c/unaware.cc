// A ring of messages and phases, for a tool that fails: prints how many messages arrived with the right content, and how many exceptions
// the program saw that it did not throw.
#include <cstdio>
#include <exception>
#include <mpi.h>
#include "vef_phase.h"

int main(int argc, char **argv)
{
    int rank, size, counts[2] = { 0, 0 }, sums[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 8; round++) {
        int out = 100 * rank + round, in = -1, from = (rank + size - 1) % size;
        MPI_Request request = MPI_REQUEST_NULL;
        vef_phase_begin("round");
        MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, round, MPI_COMM_WORLD, &request);
        MPI_Recv(&in, 1, MPI_INT, from, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        vef_phase_end("round");
        counts[0] += in == 100 * from + round;
        counts[1] += std::uncaught_exceptions();
    }
    MPI_Reduce(counts, sums, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("right %d uncaught %d\n", sums[0], sums[1]);
    MPI_Finalize();
}
