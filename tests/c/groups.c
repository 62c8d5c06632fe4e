/* Collectives between two groups, of every form and from roots in both: `groups DIRECTORY`, with 3 ranks, of which the last two are a group.
 * Each rank checks what it receives, counts the messages and bytes that its MPI sends to each other, and writes a line
 * `p2p DESTINATION MESSAGES BYTES` for each destination to DIRECTORY/RANK.txt. Within groups of at most two, all trees are alike. Open MPI's
 * blocking vector forms are counted as a message from each rank to each that has bytes for it. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { N = 5, INT = 4 };
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, ALLTOALLW,
    REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, ALL };

static int rank, own, mine, others, high, way;
static long messages[3], bytes[3];
static MPI_Comm inter;

static void check(int fine, int line, int what)
{
    if (fine) return;
    fprintf(stderr, "groups: rank %d: line %d, operation %d, way %d\n", rank, line, what, way);
    MPI_Abort(MPI_COMM_WORLD, 9);
}
#define CHECK(x) check(x, __LINE__, what)

static void to_world(int world, long count)
{
    messages[world]++, bytes[world] += count;
}
static void to_other(int at, long count) { to_world(high ? 0 : 1 + at, count); }
static void to_own(int at, long count) { to_world(high ? 1 + at : 0, count); }
/* To and from the first rank of the own group; between the first ranks of both. */
static void up(long count) { if (own == 1) to_own(0, count); }
static void down(long count) { if (own == 0 && mine == 2) to_own(1, count); }
static void across(long count) { if (own == 0) to_other(0, count); }

#ifdef OPEN_MPI
enum { OF_MPICH = 0 };
#else
enum { OF_MPICH = 1 };
#endif

/* What this rank sends. role: 0 the root, 1 beside it, 2 opposite, -1 without a root; root: its rank in the other group. */
static void count(int what, int role, int root)
{
    long n = N * INT, vector = 2 * n;
    int now = way == 0, opposite = role == 2, is_root = role == 0;
    /* A block of a vector form is as long as the ranks of both ends say together; see call(). */
    if (!OF_MPICH && !now) {
        /* libnbc sends most directly. */
        switch (what) {
        case BARRIER:
            if (own > 0) to_other(0, 0);
            else for (int i = 0; i < others; i++) to_other(i, 0);
            return;
        case BCAST: if (is_root) for (int i = 0; i < others; i++) to_other(i, n); return;
        case SCATTER: if (is_root) for (int i = 0; i < others; i++) to_other(i, n); return;
        case REDUCE: case GATHER: if (opposite) to_other(root, n); return;
        case ALLREDUCE:
            to_other(0, n);
            across(n);
            if (own == 0) for (int i = 1; i < others; i++) to_other(i, n);
            return;
        case ALLGATHER: for (int i = 0; i < others; i++) to_other(i, n); return;
        }
    }
    switch (what) {
    case BARRIER:
        if (!OF_MPICH) { up(INT), across(INT), down(INT); return; }
        if (mine == 2) to_own(1 - own, 0);
        across(1), down(1);
        return;
    case BCAST:
        if (is_root) to_other(0, n);
        if (opposite) down(n);
        return;
    case REDUCE: if (opposite) { up(n); if (own == 0) to_other(root, n); } return;
    case ALLREDUCE: up(n), across(n), down(n); return;
    case GATHER: if (opposite) { up(n); if (own == 0) to_other(root, mine * n); } return;
    case SCATTER:
        if (is_root) to_other(0, others * n);
        if (opposite) down(n);
        return;
    case ALLGATHER: up(n), across(mine * n), down(others * n); return;
    case ALLTOALL: for (int i = 0; i < others; i++) to_other(i, n); return;
    case GATHERV: if (opposite) to_other(root, INT * (1 + own)); return;
    case SCATTERV: if (is_root) for (int i = 0; i < others; i++) to_other(i, INT * (1 + i)); return;
    case ALLGATHERV:
        if (!OF_MPICH) { for (int i = 0; i < others; i++) to_other(i, INT * (1 + own)); return; }
        to_other(0, INT * (1 + own));
        down(INT * (others == 1 ? 1 : 3));
        return;
    case ALLTOALLV: case ALLTOALLW: for (int i = 0; i < others; i++) to_other(i, INT * (1 + own + i)); return;
    case REDUCE_SCATTER: case REDUCE_SCATTER_BLOCK:
        if (OF_MPICH) up(vector), across(vector);
        else to_other(0, vector);
        /* The second rank's block: equal, or the rest behind 3 integers. */
        if (mine == 2) down(what == REDUCE_SCATTER ? vector - 3 * INT : n);
        return;
    }
}

/* Makes the operation at once, by a request, or as a persistent one that is started twice. */
#if MPI_VERSION >= 4
#define EITHER(name, ...)                                                                                            \
    if (way == 0) MPI_##name(__VA_ARGS__);                                                                            \
    else if (way == 1) MPI_I(name)(__VA_ARGS__, &q), MPI_Wait(&q, MPI_STATUS_IGNORE);                                  \
    else { MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &q); MPI_Start(&q), MPI_Wait(&q, MPI_STATUS_IGNORE); MPI_Request_free(&q); }
enum { WAYS = 3 };
#else
#define EITHER(name, ...)                                                                                            \
    if (way == 0) MPI_##name(__VA_ARGS__);                                                                            \
    else MPI_I(name)(__VA_ARGS__, &q), MPI_Wait(&q, MPI_STATUS_IGNORE);
enum { WAYS = 2 };
#endif
#define MPI_I(name) MPI_I_##name
#define MPI_I_Barrier MPI_Ibarrier
#define MPI_I_Bcast MPI_Ibcast
#define MPI_I_Reduce MPI_Ireduce
#define MPI_I_Allreduce MPI_Iallreduce
#define MPI_I_Gather MPI_Igather
#define MPI_I_Scatter MPI_Iscatter
#define MPI_I_Allgather MPI_Iallgather
#define MPI_I_Alltoall MPI_Ialltoall
#define MPI_I_Gatherv MPI_Igatherv
#define MPI_I_Scatterv MPI_Iscatterv
#define MPI_I_Allgatherv MPI_Iallgatherv
#define MPI_I_Alltoallv MPI_Ialltoallv
#define MPI_I_Alltoallw MPI_Ialltoallw
#define MPI_I_Reduce_scatter MPI_Ireduce_scatter
#define MPI_I_Reduce_scatter_block MPI_Ireduce_scatter_block

/* root: a rank of MPI_COMM_WORLD. Every rank gives its rank everywhere. */
static void call(int what, int root)
{
    int root_high = root > 0, number = root_high ? root - 1 : 0, rooted = what == BCAST || what == REDUCE || what == GATHER || what == SCATTER || what == GATHERV || what == SCATTERV;
    int role = !rooted ? -1 : high != root_high ? 2 : rank == root ? 0 : 1;
    int r = role == 0 ? MPI_ROOT : role == 1 ? MPI_PROC_NULL : number, sum_of_others = high ? 0 : 3;
    int a[64], b[64], counts[2], out_counts[2], places[2] = { 0, 32 }, byte_places[2] = { 0, 128 }, blocks[2] = { 3, 2 * N - 3 };
    MPI_Datatype types[2] = { MPI_INT, MPI_INT };
    MPI_Request q;
    if (mine == 1) blocks[0] = 2 * N;
    for (int i = 0; i < 2; i++) counts[i] = 1 + i, out_counts[i] = 1 + own + i;
    for (int i = 0; i < 64; i++) a[i] = rank, b[i] = -1;
    switch (what) {
    case BARRIER: EITHER(Barrier, inter) break;
    case BCAST: EITHER(Bcast, role == 2 ? b : a, N, MPI_INT, r, inter) break;
    case REDUCE: EITHER(Reduce, a, b, N, MPI_INT, MPI_SUM, r, inter) break;
    case ALLREDUCE: EITHER(Allreduce, a, b, N, MPI_INT, MPI_SUM, inter) break;
    case GATHER: EITHER(Gather, a, N, MPI_INT, b, N, MPI_INT, r, inter) break;
    case SCATTER: EITHER(Scatter, a, N, MPI_INT, b, N, MPI_INT, r, inter) break;
    case ALLGATHER: EITHER(Allgather, a, N, MPI_INT, b, N, MPI_INT, inter) break;
    case ALLTOALL: EITHER(Alltoall, a, N, MPI_INT, b, N, MPI_INT, inter) break;
    case GATHERV: EITHER(Gatherv, a, 1 + own, MPI_INT, b, counts, places, MPI_INT, r, inter) break;
    case SCATTERV: EITHER(Scatterv, a, counts, places, MPI_INT, b, 1 + own, MPI_INT, r, inter) break;
    case ALLGATHERV: EITHER(Allgatherv, a, 1 + own, MPI_INT, b, counts, places, MPI_INT, inter) break;
    case ALLTOALLV: EITHER(Alltoallv, a, out_counts, places, MPI_INT, b, out_counts, places, MPI_INT, inter) break;
    case ALLTOALLW: EITHER(Alltoallw, a, out_counts, byte_places, types, b, out_counts, byte_places, types, inter) break;
    case REDUCE_SCATTER: EITHER(Reduce_scatter, a, b, blocks, MPI_INT, MPI_SUM, inter) break;
    case REDUCE_SCATTER_BLOCK: EITHER(Reduce_scatter_block, a, b, 2 * N / mine, MPI_INT, MPI_SUM, inter) break;
    }
    count(what, role, number);
    if (what == BCAST && role == 2) CHECK(b[N - 1] == root);
    if (what == REDUCE && role == 0) CHECK(b[N - 1] == sum_of_others);
    if (what == ALLREDUCE || what == REDUCE_SCATTER || what == REDUCE_SCATTER_BLOCK) CHECK(b[0] == sum_of_others);
    if ((what == SCATTER || what == SCATTERV) && role == 2) CHECK(b[0] == root);
    if (what == ALLGATHER || what == ALLTOALL || (what == GATHER && role == 0)) CHECK(b[(others - 1) * N] == (high ? 0 : 2));
    if (what == ALLGATHERV || what == ALLTOALLV || what == ALLTOALLW || (what == GATHERV && role == 0)) CHECK(b[places[others - 1]] == (high ? 0 : 2));
}

int main(int argc, char **argv)
{
    MPI_Comm half;
    char path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    high = rank > 0;
    MPI_Comm_split(MPI_COMM_WORLD, high, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, high ? 0 : 1, 1, &inter);
    MPI_Comm_rank(inter, &own), MPI_Comm_size(inter, &mine), MPI_Comm_remote_size(inter, &others);
    for (way = 0; way < WAYS; way++)
        for (int what = 0; what < ALL; what++)
            for (int root = 0; root < 3; root++) {
                /* MPICH 4.0 spreads what is broadcast without blocking from the wrong rank of the other group. */
                if (OF_MPICH && way > 0 && what == BCAST && root == 2) continue;
                call(what, root);
            }
    /* Two that do not block, with a message between them. */
    way = 1;
    int x = rank, y = -1, z = 0, w = -1;
    MPI_Request q[2];
    MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, inter, q);
    MPI_Iallreduce(&z, &w, 1, MPI_INT, MPI_SUM, inter, q + 1);
    if (own == 0) {
        MPI_Sendrecv(&x, 1, MPI_INT, 0, 1, &z, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE);
        to_other(0, INT);
    }
    MPI_Waitall(2, (MPI_Request[]) { q[1], q[0] }, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) {
        long before[3], sum = 0;
        memcpy(before, bytes, sizeof before);
        count(ALLREDUCE, -1, 0);
        /* Of one integer instead of N. */
        for (int k = 0; k < 3; k++) sum = bytes[k] - before[k], bytes[k] = before[k] + sum / N;
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    snprintf(path, sizeof path, "%s/%d.txt", argv[1], rank);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 3; i++)
        if (messages[i]) fprintf(file, "p2p %d %ld %ld\n", i, messages[i], bytes[i]);
    fclose(file);
    if (rank == 0) printf("fine\n");
    MPI_Finalize();
    return 0;
}
