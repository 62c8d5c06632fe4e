/* Preloaded into a program: rank 0 says how long it was between MPI_Init's return and MPI_Finalize's entry, which is what a
 * trace of the program spans. Both ends are barriers of all ranks, as a replay starts and ends all tasks. */
#include <mpi.h>
#include <stdio.h>

static double began;

static int start(int code)
{
    PMPI_Barrier(MPI_COMM_WORLD);
    began = PMPI_Wtime();
    return code;
}

int MPI_Init(int *argc, char ***argv) { return start(PMPI_Init(argc, argv)); }
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return start(PMPI_Init_thread(argc, argv, required, provided));
}

int MPI_Finalize(void)
{
    int rank;
    PMPI_Barrier(MPI_COMM_WORLD);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "span %.6f s\n", PMPI_Wtime() - began);
    return PMPI_Finalize();
}
