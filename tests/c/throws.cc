// An error handler that leaves by an exception: what comes after is recorded.
#include <cstdio>
#include <mpi.h>

static void raise(MPI_Comm *, int *code, ...) { throw *code; }

int main(int argc, char **argv)
{
    int rank, size, caught = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(raise, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    for (int round = 0; round < 3; round++) {
        int out = round, in = -1;
        MPI_Request request;
        try {
            MPI_Send(&out, 1, MPI_INT, size + 5, 1, MPI_COMM_WORLD);
        } catch (int) {
            caught++;
        }
        try {
            MPI_Isend(&out, 1, MPI_INT, size + 5, 1, MPI_COMM_WORLD, &request);
        } catch (int) {
            caught++;
        }
        MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 2, &in, 1, MPI_INT, (rank + size - 1) % size, 2, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        caught += in != round;
    }
    MPI_Finalize();
    if (rank == 0) std::printf("caught %d\n", caught);
}
