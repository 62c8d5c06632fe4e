/* Preloaded in front of the recorder: counts the one-sided transfers of a rank by itself, and prints in MPI_Finalize the bytes that it sent and
 * fetched, by messages, too: its rank, and the bytes sent to others, fetched from others, and moved within itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long long sent, fetched, within;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_own(int target, MPI_Win win)
{
    MPI_Group group, world;
    int own, in_world = -1;
    if (target == MPI_PROC_NULL) return -1;
    PMPI_Win_get_group(win, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(group, 1, &target, world, &in_world);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    PMPI_Comm_rank(MPI_COMM_WORLD, &own);
    return own == in_world;
}

static void count(int to, long long n, MPI_Datatype sends, long long m, MPI_Datatype fetches, MPI_Win win)
{
    int size = 0, own = is_own(to, win);
    long long out = 0, in = 0;
    if (own < 0) return;
    if (n > 0) PMPI_Type_size(sends, &size), out = n * size;
    if (m > 0) PMPI_Type_size(fetches, &size), in = m * size;
    if (own) within += out + in;
    else sent += out, fetched += in;
}

int MPI_Put(const void *o, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w)
{
    count(r, n, t, 0, t, w);
    return NEXT(MPI_Put)(o, n, t, r, d, m, u, w);
}

int MPI_Get(void *o, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w)
{
    count(r, 0, t, n, t, w);
    return NEXT(MPI_Get)(o, n, t, r, d, m, u, w);
}

int MPI_Accumulate(const void *o, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Op op, MPI_Win w)
{
    count(r, n, t, 0, t, w);
    return NEXT(MPI_Accumulate)(o, n, t, r, d, m, u, op, w);
}

int MPI_Get_accumulate(const void *o, int n, MPI_Datatype t, void *f, int k, MPI_Datatype v, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Op op,
    MPI_Win w)
{
    count(r, op == MPI_NO_OP ? 0 : n, t, k, v, w);
    return NEXT(MPI_Get_accumulate)(o, n, t, f, k, v, r, d, m, u, op, w);
}

int MPI_Fetch_and_op(const void *o, void *f, MPI_Datatype t, int r, MPI_Aint d, MPI_Op op, MPI_Win w)
{
    count(r, op == MPI_NO_OP ? 0 : 1, t, 1, t, w);
    return NEXT(MPI_Fetch_and_op)(o, f, t, r, d, op, w);
}

int MPI_Compare_and_swap(const void *o, const void *c, void *f, MPI_Datatype t, int r, MPI_Aint d, MPI_Win w)
{
    count(r, 2, t, 1, t, w);
    return NEXT(MPI_Compare_and_swap)(o, c, f, t, r, d, w);
}

int MPI_Send(const void *b, int n, MPI_Datatype t, int d, int tag, MPI_Comm c)
{
    int size;
    PMPI_Type_size(t, &size);
    if (d != MPI_PROC_NULL) sent += (long long)n * size;
    return NEXT(MPI_Send)(b, n, t, d, tag, c);
}

int MPI_Finalize(void)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "transfers %d %lld %lld %lld\n", rank, sent, fetched, within);
    return NEXT(MPI_Finalize)();
}
