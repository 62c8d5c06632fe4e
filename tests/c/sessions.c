/* A program without MPI_Init: everything happens in sessions, the second of which begins within the first and ends after it.
 * `sessions quickly`: without exit handlers; `sessions late`: in a destructor. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static MPI_Comm open_world(MPI_Session *session, const char *tag)
{
    MPI_Group all;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session);
    MPI_Group_from_session_pset(*session, "mpi://WORLD", &all);
    MPI_Comm_create_from_group(all, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&all);
    return comm;
}

/* Once around the ring, then a sum over all, then one over those of the same parity. */
static int work(MPI_Comm comm)
{
    MPI_Comm half;
    int rank, size, got = -1, sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 7, &got, 1, MPI_INT, (rank + size - 1) % size, 7, comm, MPI_STATUS_IGNORE);
    MPI_Allreduce(&got, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_split(comm, rank % 2, -rank, &half);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, half);
    MPI_Comm_free(&half);
    return sum;
}

static void all(void)
{
    MPI_Session first, second;
    MPI_Comm comm = open_world(&first, "vef/first");
    int sum = work(comm), rank;
    MPI_Comm other = open_world(&second, "vef/second");
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&first);
    sum += work(other);
    MPI_Comm_rank(other, &rank);
    if (rank == 0) printf("sum %d\n", sum);
    MPI_Comm_free(&other);
    MPI_Session_finalize(&second);
}

static int late;

__attribute__((destructor)) static void last(void)
{
    if (late) all();
}

int main(int argc, char **argv)
{
    late = argc > 1 && !strcmp(argv[1], "late");
    if (!late) all();
    fflush(stdout);
    if (argc > 1 && !strcmp(argv[1], "quickly")) _exit(0);
    return 0;
}
