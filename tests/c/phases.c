/* Rounds of messages and collectives, with phases: `solve` within each round, `inner` within it, `setup` before. What is begun
 * in a phase is completed after it. Linked without the recorder, it runs all the same.
 *
 *     phases [ROUNDS [anything]]
 *
 * With a second argument, `setup` begins with a barrier, the first record of each rank.
 */
#include <mpi.h>
#include <stdlib.h>

void vef_phase_begin(const char *) __attribute__((weak));
void vef_phase_end(const char *) __attribute__((weak));
static void begin(const char *name) { if (vef_phase_begin) vef_phase_begin(name); }
static void end(const char *name) { if (vef_phase_end) vef_phase_end(name); }

int main(int argc, char **argv)
{
    int rank, size, x = 1, y, z, rounds = argc > 1 ? atoi(argv[1]) : 3;
    MPI_Comm comm;
    MPI_Request kept, posted;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    begin("setup");
    if (argc > 2) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Send_init(&x, 1, MPI_INT, right, 5, comm, &kept);
    end("setup");
    for (int i = 0; i < rounds; i++) {
        MPI_Barrier(comm);
        begin("solve");
        MPI_Start(&kept);
        MPI_Recv(&y, 1, MPI_INT, left, 5, comm, MPI_STATUS_IGNORE);
        begin("inner");
        MPI_Irecv(&z, 1, MPI_INT, MPI_ANY_SOURCE, 6, comm, &posted);
        end("inner");
        MPI_Send(&x, 1, MPI_INT, right, 6, comm);
        end("solve");
        MPI_Wait(&posted, MPI_STATUS_IGNORE);
        MPI_Wait(&kept, MPI_STATUS_IGNORE);
        MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_MAX, comm);
    }
    MPI_Request_free(&kept);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
