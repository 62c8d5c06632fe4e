/* A program in C whose library in Fortran uses MPI: nobody has told MPICH's Fortran yet where its special addresses are when that
 * first calls. */
#include <mpi.h>
#include <stdio.h>

void in_fortran_(int *sum);

/* Fortran's MPI_PCONTROL has a level alone: what else there is on the stack is the caller's. */
void mpi_pcontrol_(int *level, long, long, long, long, long, long on_stack);

int main(int argc, char **argv)
{
    int rank, sum = 0, level = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    in_fortran_(&sum);
    mpi_pcontrol_(&level, 1, 1, 1, 1, 1, 1);
    if (rank == 0) printf("sum %d\n", sum);
    MPI_Finalize();
    return 0;
}
