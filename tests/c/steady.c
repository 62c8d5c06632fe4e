/* For some seconds, ranks send around a ring and agree whether to go on; rank 0 computes a little in each round. Prints whole lines. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, on = 1, steps = 0;
    char data[1000];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double end = MPI_Wtime() + atof(argv[1]);
    MPI_Pcontrol(5);
    for (; on; steps++) {
        int mine = MPI_Wtime() < end;
        MPI_Sendrecv_replace(data, 1000, MPI_BYTE, (rank + 1) % size, 1, (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&mine, &on, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (rank == 0) usleep(1000);
        if (rank == 0 && steps % 5 == 0) printf("step %d of a program that prints whole lines\n", steps), fflush(stdout);
    }
    MPI_Pcontrol(-5);
    MPI_Finalize();
    return 0;
}
