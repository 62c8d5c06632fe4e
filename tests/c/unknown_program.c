/* Calls three functions of the library that it is linked to. */
#include <stdio.h>

int MPI_Init(int *, char ***), MPI_Finalize(void), MPI_Barrier(void *);

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Barrier(0);
    MPI_Finalize();
    puts("fine");
    return 0;
}
