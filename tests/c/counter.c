/* An independent witness of a run: counts, for each pair of world ranks, the messages and bytes that the
 * program sends, and the collective calls on (intra-)communicators of more than one task. Preloaded in front of the
 * recorder; calls on to whatever stands behind it. Deliberately trivial: no requests, no times, nothing shared
 * with the code under test. Sees C (the large-count forms too) and Fortran; a call that MPI makes on the way of another
 * (MPICH's Fortran calls C) is not counted again. Writes $COUNT_DIR/<rank>.txt at MPI_Finalize:
 *     p2p <destination world rank> <messages> <bytes>
 *     coll <operation> <calls>
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEXT(name) \
    static __typeof__(&name) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static long *messages, *bytes;
static __thread int inside; /* a Fortran call that was counted */
enum { BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, BARRIER, ALLTOALL, GATHERV, SCATTERV, ALLGATHERV,
       ALLTOALLV, ALLTOALLW, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, OPERATIONS };
static const char *names[] = { "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Barrier", "Alltoall",
    "Gatherv", "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw", "Reduce_scatter", "Reduce_scatter_block", "Scan",
    "Exscan" };
static long calls[OPERATIONS];

static void sent(long count, MPI_Datatype type, int dest, MPI_Comm comm)
{
    int size, world_size, world;
    MPI_Group group, all;
    if (inside || dest == MPI_PROC_NULL) return;
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (!messages) {
        messages = calloc(world_size, sizeof *messages);
        bytes = calloc(world_size, sizeof *bytes);
    }
    PMPI_Type_size(type, &size);
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_translate_ranks(group, 1, &dest, all, &world);
    PMPI_Group_free(&group);
    PMPI_Group_free(&all);
    messages[world]++;
    bytes[world] += count * size;
}

static void entered(int operation, MPI_Comm comm)
{
    int size, between_groups;
    if (inside) return;
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_test_inter(comm, &between_groups);
    if (size > 1 && !between_groups) calls[operation]++;
}

#define BLOCKING(name) \
    int name(const void *b, int n, MPI_Datatype t, int d, int tag, MPI_Comm c) \
    { NEXT(name); sent(n, t, d, c); return next(b, n, t, d, tag, c); }
BLOCKING(MPI_Send) BLOCKING(MPI_Bsend) BLOCKING(MPI_Ssend) BLOCKING(MPI_Rsend)

#define NONBLOCKING(name) \
    int name(const void *b, int n, MPI_Datatype t, int d, int tag, MPI_Comm c, MPI_Request *r) \
    { NEXT(name); sent(n, t, d, c); return next(b, n, t, d, tag, c, r); }
NONBLOCKING(MPI_Isend) NONBLOCKING(MPI_Ibsend) NONBLOCKING(MPI_Issend) NONBLOCKING(MPI_Irsend)

int MPI_Sendrecv(const void *b, int n, MPI_Datatype t, int d, int tag, void *rb, int rn, MPI_Datatype rt, int s, int rtag,
                 MPI_Comm c, MPI_Status *st)
{ NEXT(MPI_Sendrecv); sent(n, t, d, c); return next(b, n, t, d, tag, rb, rn, rt, s, rtag, c, st); }
int MPI_Sendrecv_replace(void *b, int n, MPI_Datatype t, int d, int tag, int s, int rtag, MPI_Comm c, MPI_Status *st)
{ NEXT(MPI_Sendrecv_replace); sent(n, t, d, c); return next(b, n, t, d, tag, s, rtag, c, st); }

#define COLLECTIVE(operation, name, declared, passed) \
    int name declared { NEXT(name); entered(operation, c); return next passed; }
COLLECTIVE(BARRIER, MPI_Barrier, (MPI_Comm c), (c))
COLLECTIVE(BCAST, MPI_Bcast, (void *b, int n, MPI_Datatype t, int r, MPI_Comm c), (b, n, t, r, c))
COLLECTIVE(REDUCE, MPI_Reduce, (const void *s, void *d, int n, MPI_Datatype t, MPI_Op o, int r, MPI_Comm c), (s, d, n, t, o, r, c))
COLLECTIVE(ALLREDUCE, MPI_Allreduce, (const void *s, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, d, n, t, o, c))
COLLECTIVE(SCAN, MPI_Scan, (const void *s, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, d, n, t, o, c))
COLLECTIVE(EXSCAN, MPI_Exscan, (const void *s, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, d, n, t, o, c))
COLLECTIVE(GATHER, MPI_Gather, (const void *s, int sn, MPI_Datatype st, void *d, int dn, MPI_Datatype dt, int r, MPI_Comm c), (s, sn, st, d, dn, dt, r, c))
COLLECTIVE(SCATTER, MPI_Scatter, (const void *s, int sn, MPI_Datatype st, void *d, int dn, MPI_Datatype dt, int r, MPI_Comm c), (s, sn, st, d, dn, dt, r, c))
COLLECTIVE(ALLGATHER, MPI_Allgather, (const void *s, int sn, MPI_Datatype st, void *d, int dn, MPI_Datatype dt, MPI_Comm c), (s, sn, st, d, dn, dt, c))
COLLECTIVE(ALLTOALL, MPI_Alltoall, (const void *s, int sn, MPI_Datatype st, void *d, int dn, MPI_Datatype dt, MPI_Comm c), (s, sn, st, d, dn, dt, c))
COLLECTIVE(GATHERV, MPI_Gatherv, (const void *s, int sn, MPI_Datatype st, void *d, const int *dn, const int *dp, MPI_Datatype dt, int r, MPI_Comm c), (s, sn, st, d, dn, dp, dt, r, c))
COLLECTIVE(SCATTERV, MPI_Scatterv, (const void *s, const int *sn, const int *sp, MPI_Datatype st, void *d, int dn, MPI_Datatype dt, int r, MPI_Comm c), (s, sn, sp, st, d, dn, dt, r, c))
COLLECTIVE(ALLGATHERV, MPI_Allgatherv, (const void *s, int sn, MPI_Datatype st, void *d, const int *dn, const int *dp, MPI_Datatype dt, MPI_Comm c), (s, sn, st, d, dn, dp, dt, c))
COLLECTIVE(ALLTOALLV, MPI_Alltoallv, (const void *s, const int *sn, const int *sp, MPI_Datatype st, void *d, const int *dn, const int *dp, MPI_Datatype dt, MPI_Comm c), (s, sn, sp, st, d, dn, dp, dt, c))
COLLECTIVE(ALLTOALLW, MPI_Alltoallw, (const void *s, const int *sn, const int *sp, const MPI_Datatype *st, void *d, const int *dn, const int *dp, const MPI_Datatype *dt, MPI_Comm c), (s, sn, sp, st, d, dn, dp, dt, c))
COLLECTIVE(REDUCE_SCATTER, MPI_Reduce_scatter, (const void *s, void *d, const int *n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, d, n, t, o, c))
COLLECTIVE(REDUCE_SCATTER_BLOCK, MPI_Reduce_scatter_block, (const void *s, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, d, n, t, o, c))

static void report(void)
{
    int rank, size, other;
    char path[4096];
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(path, sizeof path, "%s/%d.txt", getenv("COUNT_DIR"), rank);
    FILE *file = fopen(path, "w");
    for (other = 0; file && messages && other < size; other++)
        if (messages[other]) fprintf(file, "p2p %d %ld %ld\n", other, messages[other], bytes[other]);
    for (other = 0; file && other < OPERATIONS; other++)
        if (calls[other]) fprintf(file, "coll %s %ld\n", names[other], calls[other]);
    if (file) fclose(file);
}

int MPI_Finalize(void)
{
    NEXT(MPI_Finalize);
    if (!inside) report();
    return next();
}

/* Fortran: mpif.h and `use mpi` (mpi_x_), mpi_f08 (mpi_x_f08_, with buffers mpi_x_f08ts_ under MPICH). */
#define FORTRAN_NEXT(name, declared, passed) \
    static void (*next) declared; \
    if (!next) next = (void (*) declared)dlsym(RTLD_NEXT, #name); \
    inside++; next passed; inside--;
#define FORTRAN_NAMES(stem, counted, declared, passed) \
    void stem##_ declared { counted; FORTRAN_NEXT(stem##_, declared, passed) } \
    void stem##_f08_ declared { counted; FORTRAN_NEXT(stem##_f08_, declared, passed) } \
    void stem##_f08ts_ declared { counted; FORTRAN_NEXT(stem##_f08ts_, declared, passed) }
typedef MPI_Fint *F; /* an INTEGER or a handle by reference */
typedef void *B;     /* a buffer or an array */
#define COMM PMPI_Comm_f2c(*c)
#define SENT sent(*n, PMPI_Type_f2c(*t), *d, COMM)

#define FORTRAN_BLOCKING(stem) FORTRAN_NAMES(stem, SENT, (B b, F n, F t, F d, F tag, F c, F e), (b, n, t, d, tag, c, e))
FORTRAN_BLOCKING(mpi_send) FORTRAN_BLOCKING(mpi_bsend) FORTRAN_BLOCKING(mpi_ssend) FORTRAN_BLOCKING(mpi_rsend)
#define FORTRAN_NONBLOCKING(stem) FORTRAN_NAMES(stem, SENT, (B b, F n, F t, F d, F tag, F c, F r, F e), (b, n, t, d, tag, c, r, e))
FORTRAN_NONBLOCKING(mpi_isend) FORTRAN_NONBLOCKING(mpi_ibsend) FORTRAN_NONBLOCKING(mpi_issend) FORTRAN_NONBLOCKING(mpi_irsend)
FORTRAN_NAMES(mpi_sendrecv, SENT, (B b, F n, F t, F d, F tag, B rb, F rn, F rt, F s, F rtag, F c, B st, F e), (b, n, t, d, tag, rb, rn, rt, s, rtag, c, st, e))
FORTRAN_NAMES(mpi_sendrecv_replace, SENT, (B b, F n, F t, F d, F tag, F s, F rtag, F c, B st, F e), (b, n, t, d, tag, s, rtag, c, st, e))

#define FORTRAN_COLLECTIVE(stem, operation, declared, passed) FORTRAN_NAMES(stem, entered(operation, COMM), declared, passed)
FORTRAN_COLLECTIVE(mpi_barrier, BARRIER, (F c, F e), (c, e))
FORTRAN_COLLECTIVE(mpi_bcast, BCAST, (B b, F n, F t, F r, F c, F e), (b, n, t, r, c, e))
FORTRAN_COLLECTIVE(mpi_reduce, REDUCE, (B s, B d, F n, F t, F o, F r, F c, F e), (s, d, n, t, o, r, c, e))
FORTRAN_COLLECTIVE(mpi_allreduce, ALLREDUCE, (B s, B d, F n, F t, F o, F c, F e), (s, d, n, t, o, c, e))
FORTRAN_COLLECTIVE(mpi_scan, SCAN, (B s, B d, F n, F t, F o, F c, F e), (s, d, n, t, o, c, e))
FORTRAN_COLLECTIVE(mpi_exscan, EXSCAN, (B s, B d, F n, F t, F o, F c, F e), (s, d, n, t, o, c, e))
FORTRAN_COLLECTIVE(mpi_gather, GATHER, (B s, F sn, F st, B d, F dn, F dt, F r, F c, F e), (s, sn, st, d, dn, dt, r, c, e))
FORTRAN_COLLECTIVE(mpi_scatter, SCATTER, (B s, F sn, F st, B d, F dn, F dt, F r, F c, F e), (s, sn, st, d, dn, dt, r, c, e))
FORTRAN_COLLECTIVE(mpi_allgather, ALLGATHER, (B s, F sn, F st, B d, F dn, F dt, F c, F e), (s, sn, st, d, dn, dt, c, e))
FORTRAN_COLLECTIVE(mpi_alltoall, ALLTOALL, (B s, F sn, F st, B d, F dn, F dt, F c, F e), (s, sn, st, d, dn, dt, c, e))
FORTRAN_COLLECTIVE(mpi_gatherv, GATHERV, (B s, F sn, F st, B d, B dn, B dp, F dt, F r, F c, F e), (s, sn, st, d, dn, dp, dt, r, c, e))
FORTRAN_COLLECTIVE(mpi_scatterv, SCATTERV, (B s, B sn, B sp, F st, B d, F dn, F dt, F r, F c, F e), (s, sn, sp, st, d, dn, dt, r, c, e))
FORTRAN_COLLECTIVE(mpi_allgatherv, ALLGATHERV, (B s, F sn, F st, B d, B dn, B dp, F dt, F c, F e), (s, sn, st, d, dn, dp, dt, c, e))
FORTRAN_COLLECTIVE(mpi_alltoallv, ALLTOALLV, (B s, B sn, B sp, F st, B d, B dn, B dp, F dt, F c, F e), (s, sn, sp, st, d, dn, dp, dt, c, e))
FORTRAN_COLLECTIVE(mpi_reduce_scatter, REDUCE_SCATTER, (B s, B d, B n, F t, F o, F c, F e), (s, d, n, t, o, c, e))
FORTRAN_COLLECTIVE(mpi_reduce_scatter_block, REDUCE_SCATTER_BLOCK, (B s, B d, F n, F t, F o, F c, F e), (s, d, n, t, o, c, e))

#define FORTRAN_FINALIZE(name) void name(F e) { if (!inside) report(); FORTRAN_NEXT(name, (F e), (e)) }
FORTRAN_FINALIZE(mpi_finalize_) FORTRAN_FINALIZE(mpi_finalize_f08_)

#if MPI_VERSION >= 4 /* mpi4py calls the large-count forms */
#define LARGE_BLOCKING(name) \
    int name(const void *b, MPI_Count n, MPI_Datatype t, int d, int tag, MPI_Comm c) \
    { NEXT(name); sent(n, t, d, c); return next(b, n, t, d, tag, c); }
LARGE_BLOCKING(MPI_Send_c) LARGE_BLOCKING(MPI_Bsend_c) LARGE_BLOCKING(MPI_Ssend_c) LARGE_BLOCKING(MPI_Rsend_c)
#define LARGE_NONBLOCKING(name) \
    int name(const void *b, MPI_Count n, MPI_Datatype t, int d, int tag, MPI_Comm c, MPI_Request *r) \
    { NEXT(name); sent(n, t, d, c); return next(b, n, t, d, tag, c, r); }
LARGE_NONBLOCKING(MPI_Isend_c) LARGE_NONBLOCKING(MPI_Ibsend_c) LARGE_NONBLOCKING(MPI_Issend_c) LARGE_NONBLOCKING(MPI_Irsend_c)
int MPI_Sendrecv_c(const void *b, MPI_Count n, MPI_Datatype t, int d, int tag, void *rb, MPI_Count rn, MPI_Datatype rt, int s,
                   int rtag, MPI_Comm c, MPI_Status *st)
{ NEXT(MPI_Sendrecv_c); sent(n, t, d, c); return next(b, n, t, d, tag, rb, rn, rt, s, rtag, c, st); }
COLLECTIVE(BCAST, MPI_Bcast_c, (void *b, MPI_Count n, MPI_Datatype t, int r, MPI_Comm c), (b, n, t, r, c))
COLLECTIVE(REDUCE, MPI_Reduce_c, (const void *s, void *d, MPI_Count n, MPI_Datatype t, MPI_Op o, int r, MPI_Comm c), (s, d, n, t, o, r, c))
COLLECTIVE(ALLREDUCE, MPI_Allreduce_c, (const void *s, void *d, MPI_Count n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, d, n, t, o, c))
COLLECTIVE(GATHER, MPI_Gather_c, (const void *s, MPI_Count sn, MPI_Datatype st, void *d, MPI_Count dn, MPI_Datatype dt, int r, MPI_Comm c), (s, sn, st, d, dn, dt, r, c))
COLLECTIVE(SCATTER, MPI_Scatter_c, (const void *s, MPI_Count sn, MPI_Datatype st, void *d, MPI_Count dn, MPI_Datatype dt, int r, MPI_Comm c), (s, sn, st, d, dn, dt, r, c))
COLLECTIVE(GATHERV, MPI_Gatherv_c, (const void *s, MPI_Count sn, MPI_Datatype st, void *d, const MPI_Count *dn, const MPI_Aint *dp, MPI_Datatype dt, int r, MPI_Comm c), (s, sn, st, d, dn, dp, dt, r, c))
COLLECTIVE(ALLGATHER, MPI_Allgather_c, (const void *s, MPI_Count sn, MPI_Datatype st, void *d, MPI_Count dn, MPI_Datatype dt, MPI_Comm c), (s, sn, st, d, dn, dt, c))
COLLECTIVE(ALLGATHERV, MPI_Allgatherv_c, (const void *s, MPI_Count sn, MPI_Datatype st, void *d, const MPI_Count *dn, const MPI_Aint *dp, MPI_Datatype dt, MPI_Comm c), (s, sn, st, d, dn, dp, dt, c))
COLLECTIVE(ALLTOALL, MPI_Alltoall_c, (const void *s, MPI_Count sn, MPI_Datatype st, void *d, MPI_Count dn, MPI_Datatype dt, MPI_Comm c), (s, sn, st, d, dn, dt, c))
#endif
