/* Opens the MPI library that the first argument names and calls it by names of the global scope, as Julia's MPI.jl does, in a ring. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "mpi.h"

static void *find(const char *name)
{
    void *found = dlsym(dlopen(NULL, RTLD_LAZY), name);
    if (!found) fprintf(stderr, "no %s\n", name);
    return found;
}
#define CALL(name, ...) ((__typeof__(&name))find(#name))(__VA_ARGS__)

int main(int argc, char **argv)
{
    int rank, size, got = -1;
    if (!dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL)) return fprintf(stderr, "%s\n", dlerror()), 1;
    CALL(MPI_Init, NULL, NULL);
    /* What mpi.h names directly are constants of MPICH; of Open MPI, addresses in its library. */
#ifdef OPEN_MPI
    MPI_Comm world = find("ompi_mpi_comm_world");
    MPI_Datatype type = find("ompi_mpi_int");
#else
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype type = MPI_INT;
#endif
    CALL(MPI_Comm_rank, world, &rank);
    CALL(MPI_Comm_size, world, &size);
    CALL(MPI_Sendrecv, &rank, 1, type, (rank + 1) % size, 3, &got, 1, type, (rank + size - 1) % size, 3, world, MPI_STATUS_IGNORE);
    CALL(MPI_Finalize);
    return got != (rank + size - 1) % size;
}
