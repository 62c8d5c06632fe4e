/* A program in C whose library in Fortran uses MPI: nobody has told MPICH's Fortran yet where its special addresses are when that
 * first calls. */
#include <mpi.h>
#include <stdio.h>

void in_fortran_(int *sum);

int main(int argc, char **argv)
{
    int rank, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    in_fortran_(&sum);
    if (rank == 0) printf("sum %d\n", sum);
    MPI_Finalize();
    return 0;
}
