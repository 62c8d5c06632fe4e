/* Each rank computes between collectives and messages, the others in front of them more than the first. Prints its rank and the processor time of the computing in
   seconds: what it takes on a core of its own. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double used(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    int rank, size, from;
    double sum = 0, all;
    volatile double value = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int step = 0; step < 20; step++) {
        double begin = used();
        for (long i = 0; i < 1000000L * (1 + rank); i++)
            value = value * 1.0000001 + 1e-9;
        sum += used() - begin;
        double mine = value;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Sendrecv(&step, 1, MPI_INT, (rank + 1) % size, 1, &from, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    printf("%d %f\n", rank, sum);
    MPI_Finalize();
    return 0;
}
