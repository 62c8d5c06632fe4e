/* Three pieces of one scene, each compiled from its part of this file: an interpreter that knows no MPI (HOST) opens a
 * module (MODULE) that brings an MPI out of the global scope, while a profiler (PROFILER) is preloaded before our own
 * library. The profiler's next is ours; ours must find MPI, not the profiler again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef HOST
int main(int argc, char **argv)
{
    void *module = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    return module ? ((int (*)(void))dlsym(module, "run"))() : 1;
}
#endif

#ifdef MODULE
#include <mpi.h>
int run(void)
{
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int code = MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return code;
}
#endif

#ifdef PROFILER
#include <mpi.h>
int MPI_Barrier(MPI_Comm comm)
{
    static int depth;
    int (*next)(MPI_Comm) = (int (*)(MPI_Comm))dlsym(RTLD_NEXT, "MPI_Barrier");
    if (depth++ || !next) abort();
    int code = next(comm);
    depth--;
    puts("profiled");
    return code;
}
#endif
