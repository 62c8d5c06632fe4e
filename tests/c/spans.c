/* A sum over all ranks, a put that no trace can hold, and a fifth of a second of computing. Each rank prints how long it was
   between MPI_Init and MPI_Finalize, in seconds, by its own clock. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, one = 1, sum = 0, shared = 0;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    double begin = MPI_Wtime();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_create(&shared, sizeof shared, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(&one, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    usleep(200000);
    printf("%.9f\n", MPI_Wtime() - begin);
    fflush(stdout);
    MPI_Finalize();
    return sum == size ? 0 : 1;
}
