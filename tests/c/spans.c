/* A sum over all ranks, a write to a file, which no trace holds, and a fifth of a second of computing. Each rank prints how long it was
   between MPI_Init and MPI_Finalize, in seconds, by its own clock. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, one = 1, sum = 0;
    char name[32];
    MPI_File file;
    MPI_Init(&argc, &argv);
    double begin = MPI_Wtime();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "spans-%d", rank);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, &one, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    usleep(200000);
    printf("%.9f\n", MPI_Wtime() - begin);
    fflush(stdout);
    MPI_Finalize();
    return sum == size ? 0 : 1;
}
