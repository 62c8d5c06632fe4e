/* Rank 1 enters the strict mode of seccomp, in which a thread may only read, write and end, and does not come back. Each rank makes a file
 * "up.PID" before that.
 */
#include <linux/seccomp.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    char name[32];
    snprintf(name, sizeof name, "up.%d", (int)getpid());
    FILE *up = fopen(name, "w");
    fclose(up);
    if (rank == 1) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        for (volatile long spin = 0;;) spin++;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
