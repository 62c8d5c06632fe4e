// A rank writes into a window in shared memory, and another one reads it without a call of MPI.
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, unit, *mine, *first;
    MPI_Aint size;
    MPI_Win window;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate_shared(sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
    MPI_Win_shared_query(window, 0, &size, &unit, &first);
    MPI_Win_fence(0, window);
    if (rank == 0) *first = 42;
    MPI_Win_fence(0, window);
    int is_right = *first == 42;
    MPI_Win_free(&window);
    MPI_Finalize();
    return is_right ? 0 : 1;
}
