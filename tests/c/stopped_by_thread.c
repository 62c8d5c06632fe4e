/* A second thread makes its first call when the file of the rank has no room for another thread. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *second(void *nothing)
{
    int rank, sent = 7, got = 0;
    (void)nothing;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Sendrecv(&sent, 1, MPI_INT, rank, 1, &got, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (got != 7)
        abort();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int provided, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (provided < MPI_THREAD_MULTIPLE || pthread_create(&thread, NULL, second, NULL) != 0 || pthread_join(thread, NULL) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("fine");
    MPI_Finalize();
    return 0;
}
