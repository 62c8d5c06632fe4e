/* An independent witness of a run: counts, for each pair of world ranks, the messages and bytes that the
 * program sends, and the collective calls on (intra-)communicators of more than one task. Preloaded in front of the
 * recorder; calls on to whatever stands behind it. Deliberately trivial: no requests, no times, nothing shared
 * with the code under test. Writes $COUNT_DIR/<rank>.txt at MPI_Finalize:
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
enum { BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, BARRIER, ALLTOALL, GATHERV, SCATTERV, ALLGATHERV,
       ALLTOALLV, ALLTOALLW, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, OPERATIONS };
static const char *names[] = { "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Barrier", "Alltoall",
    "Gatherv", "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw", "Reduce_scatter", "Reduce_scatter_block", "Scan",
    "Exscan" };
static long calls[OPERATIONS];

static void sent(int count, MPI_Datatype type, int dest, MPI_Comm comm)
{
    int size, world_size, world;
    MPI_Group group, all;
    if (dest == MPI_PROC_NULL) return;
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
    bytes[world] += (long)count * size;
}

static void entered(int operation, MPI_Comm comm)
{
    int size, between_groups;
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

int MPI_Finalize(void)
{
    NEXT(MPI_Finalize);
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
    return next();
}
