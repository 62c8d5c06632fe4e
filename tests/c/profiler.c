/* A profiling library in C that knows no Fortran and calls the next definition of the same name, for LD_PRELOAD in front of the recorder;
   with -DTO_PMPI it calls PMPI, as most do, and belongs behind. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

#ifdef TO_PMPI
#define WRAP(name, parameters, arguments) int name parameters { return P##name arguments; }
#else
#define WRAP(name, parameters, arguments)                       \
    int name parameters                                         \
    {                                                           \
        static __typeof__(&name) next;                          \
        if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
        return next arguments;                                  \
    }
#endif

#ifndef TO_PMPI
WRAP(MPI_Init, (int *c, char ***v), (c, v))
WRAP(MPI_Finalize, (void), ())
#endif
WRAP(MPI_Send, (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c))
WRAP(MPI_Isend, (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *q), (b, n, t, to, tag, c, q))
WRAP(MPI_Recv, (void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s), (b, n, t, from, tag, c, s))
WRAP(MPI_Waitall, (int n, MPI_Request *q, MPI_Status *s), (n, q, s))
WRAP(MPI_Allreduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (a, b, n, t, o, c))
WRAP(MPI_Barrier, (MPI_Comm c), (c))
WRAP(MPI_Comm_dup, (MPI_Comm c, MPI_Comm *d), (c, d))
