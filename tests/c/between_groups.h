/* Collectives between two groups of one or two ranks, for groups.c and random.c, which fill `g` and define sent(), for each message that their
 * MPI sends. Within such groups all trees are alike. Open MPI's blocking vector forms are counted as a message from each rank to each that has
 * bytes for it. */

enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, ALLTOALLW,
    REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, ALL };
#ifdef OPEN_MPI
enum { OF_MPICH = 0 };
#else
enum { OF_MPICH = 1 };
#endif
enum { INT = 4, MOST_INTS = 30 };

static struct {
    MPI_Comm inter;
    /* This rank in its group, the sizes of its group and of the other, and their ranks in MPI_COMM_WORLD. */
    int own, mine, others, group[2], other[2];
    /* Integers of a block; 0: at once, 1: by a request, 2: persistent. */
    int n, way;
} g;

static void sent(int world, long bytes);

static void check_between(int fine, int line, int what)
{
    if (fine) return;
    fprintf(stderr, "between groups: rank %d of %d: line %d, operation %d, way %d\n", g.own, g.mine, line, what, g.way);
    MPI_Abort(MPI_COMM_WORLD, 9);
}
#define CHECK_BETWEEN(x) check_between(x, __LINE__, what)

static void to_other(int at, long bytes) { sent(g.other[at], bytes); }
static void to_own(int at, long bytes) { sent(g.group[at], bytes); }
/* To and from the first rank of the own group; between the first ranks of both. */
static void up(long bytes) { if (g.own == 1) to_own(0, bytes); }
static void down(long bytes) { if (g.own == 0 && g.mine == 2) to_own(1, bytes); }
static void across(long bytes) { if (g.own == 0) to_other(0, bytes); }

/* What this rank sends. role: 0 the root, 1 beside it, 2 opposite, -1 without a root; root: its rank in the other group. */
static void count_sent(int what, int role, int root)
{
    long unit = INT * g.n, vector = 2 * unit;
    int opposite = role == 2, is_root = role == 0, others = g.others;
    /* A block of a vector form is as long as the ranks of both ends say together; see call_between(). */
    if (!OF_MPICH && g.way > 0) {
        /* libnbc sends most directly. */
        switch (what) {
        case BARRIER:
            if (g.own > 0) to_other(0, 0);
            else for (int i = 0; i < others; i++) to_other(i, 0);
            return;
        case BCAST: case SCATTER: if (is_root) for (int i = 0; i < others; i++) to_other(i, unit); return;
        case REDUCE: case GATHER: if (opposite) to_other(root, unit); return;
        case ALLREDUCE:
            to_other(0, unit);
            across(unit);
            if (g.own == 0) for (int i = 1; i < others; i++) to_other(i, unit);
            return;
        case ALLGATHER: for (int i = 0; i < others; i++) to_other(i, unit); return;
        }
    }
    switch (what) {
    case BARRIER:
        if (!OF_MPICH) { up(INT), across(INT), down(INT); return; }
        if (g.mine == 2) to_own(1 - g.own, 0);
        across(1), down(1);
        return;
    case BCAST:
        if (is_root) to_other(0, unit);
        if (opposite) down(unit);
        return;
    case REDUCE: if (opposite) { up(unit); if (g.own == 0) to_other(root, unit); } return;
    case ALLREDUCE: up(unit), across(unit), down(unit); return;
    case GATHER: if (opposite) { up(unit); if (g.own == 0) to_other(root, g.mine * unit); } return;
    case SCATTER:
        if (is_root) to_other(0, others * unit);
        if (opposite) down(unit);
        return;
    case ALLGATHER: up(unit), across(g.mine * unit), down(others * unit); return;
    case ALLTOALL: for (int i = 0; i < others; i++) to_other(i, unit); return;
    case GATHERV: if (opposite) to_other(root, unit * (1 + g.own)); return;
    case SCATTERV: if (is_root) for (int i = 0; i < others; i++) to_other(i, unit * (1 + i)); return;
    case ALLGATHERV:
        if (!OF_MPICH) { for (int i = 0; i < others; i++) to_other(i, unit * (1 + g.own)); return; }
        to_other(0, unit * (1 + g.own));
        down(unit * (others == 1 ? 1 : 3));
        return;
    case ALLTOALLV: case ALLTOALLW: for (int i = 0; i < others; i++) to_other(i, unit * (1 + g.own + i)); return;
    case REDUCE_SCATTER: case REDUCE_SCATTER_BLOCK:
        if (OF_MPICH) up(vector), across(vector);
        else to_other(0, vector);
        /* The second rank's block: equal, or the rest behind an integer. */
        if (g.mine == 2) down(what == REDUCE_SCATTER ? vector - INT : unit);
        return;
    }
}

/* Makes the operation at once, by a request, or as a persistent one. */
#if MPI_VERSION >= 4
#define EITHER(name, ...)                                                                                            \
    if (g.way == 0) MPI_##name(__VA_ARGS__);                                                                          \
    else if (g.way == 1) MPI_I(name)(__VA_ARGS__, &q), MPI_Wait(&q, MPI_STATUS_IGNORE);                                \
    else { MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &q); MPI_Start(&q), MPI_Wait(&q, MPI_STATUS_IGNORE); MPI_Request_free(&q); }
enum { WAYS = 3 };
#else
#define EITHER(name, ...)                                                                                            \
    if (g.way == 0) MPI_##name(__VA_ARGS__);                                                                          \
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

/* The part of this rank in an operation with the given root, a rank of MPI_COMM_WORLD, as in count_sent(). */
static int role_of(int what, int root)
{
    int rooted = what == BCAST || what == REDUCE || what == GATHER || what == SCATTER || what == GATHERV || what == SCATTERV;
    if (!rooted) return -1;
    for (int i = 0; i < g.mine; i++)
        if (g.group[i] == root) return i == g.own ? 0 : 1;
    return 2;
}

/* The argument for that part. */
static int root_argument(int what, int root)
{
    int role = role_of(what, root);
    return role == 0 ? MPI_ROOT : role == 1 ? MPI_PROC_NULL : g.other[0] == root ? 0 : 1;
}

/* MPICH 4.0 spreads what is broadcast without blocking from the wrong rank of the other group. */
static int is_broken(int what, int root)
{
    return OF_MPICH && g.way > 0 && what == BCAST && ((g.mine == 2 && root == g.group[1]) || (g.others == 2 && root == g.other[1]));
}

/* Every rank gives its rank in MPI_COMM_WORLD everywhere. */
static void call_between(int what, int root)
{
    int role = role_of(what, root), r = root_argument(what, root), n = g.n, own = g.own, mine = g.mine, last = g.other[g.others - 1];
    int a[8 * MOST_INTS], b[8 * MOST_INTS], counts[2], out_counts[2], places[2] = { 0, 3 * n }, byte_places[2] = { 0, 3 * n * INT };
    int blocks[2] = { mine == 1 ? 2 * n : 1, 2 * n - 1 }, sum_of_others = g.others == 1 ? last : last + g.other[0];
    MPI_Datatype types[2] = { MPI_INT, MPI_INT };
    MPI_Comm inter = g.inter;
    MPI_Request q;
    for (int i = 0; i < 2; i++) counts[i] = n * (1 + i), out_counts[i] = n * (1 + own + i);
    for (int i = 0; i < 8 * MOST_INTS; i++) a[i] = g.group[own], b[i] = -1;
    switch (what) {
    case BARRIER: EITHER(Barrier, inter) break;
    case BCAST: EITHER(Bcast, role == 2 ? b : a, n, MPI_INT, r, inter) break;
    case REDUCE: EITHER(Reduce, a, b, n, MPI_INT, MPI_SUM, r, inter) break;
    case ALLREDUCE: EITHER(Allreduce, a, b, n, MPI_INT, MPI_SUM, inter) break;
    case GATHER: EITHER(Gather, a, n, MPI_INT, b, n, MPI_INT, r, inter) break;
    case SCATTER: EITHER(Scatter, a, n, MPI_INT, b, n, MPI_INT, r, inter) break;
    case ALLGATHER: EITHER(Allgather, a, n, MPI_INT, b, n, MPI_INT, inter) break;
    case ALLTOALL: EITHER(Alltoall, a, n, MPI_INT, b, n, MPI_INT, inter) break;
    case GATHERV: EITHER(Gatherv, a, n * (1 + own), MPI_INT, b, counts, places, MPI_INT, r, inter) break;
    case SCATTERV: EITHER(Scatterv, a, counts, places, MPI_INT, b, n * (1 + own), MPI_INT, r, inter) break;
    case ALLGATHERV: EITHER(Allgatherv, a, n * (1 + own), MPI_INT, b, counts, places, MPI_INT, inter) break;
    case ALLTOALLV: EITHER(Alltoallv, a, out_counts, places, MPI_INT, b, out_counts, places, MPI_INT, inter) break;
    case ALLTOALLW: EITHER(Alltoallw, a, out_counts, byte_places, types, b, out_counts, byte_places, types, inter) break;
    case REDUCE_SCATTER: EITHER(Reduce_scatter, a, b, blocks, MPI_INT, MPI_SUM, inter) break;
    case REDUCE_SCATTER_BLOCK: EITHER(Reduce_scatter_block, a, b, 2 * n / mine, MPI_INT, MPI_SUM, inter) break;
    }
    count_sent(what, role, r);
    if (what == BCAST && role == 2) CHECK_BETWEEN(b[n - 1] == root);
    if (what == REDUCE && role == 0) CHECK_BETWEEN(b[n - 1] == sum_of_others);
    if (what == ALLREDUCE || what == REDUCE_SCATTER || what == REDUCE_SCATTER_BLOCK) CHECK_BETWEEN(b[0] == sum_of_others);
    if ((what == SCATTER || what == SCATTERV) && role == 2) CHECK_BETWEEN(b[0] == root);
    if (what == ALLGATHER || what == ALLTOALL || (what == GATHER && role == 0)) CHECK_BETWEEN(b[(g.others - 1) * n] == last);
    if (what == ALLGATHERV || what == ALLTOALLV || what == ALLTOALLW || (what == GATHERV && role == 0)) CHECK_BETWEEN(b[places[g.others - 1]] == last);
}
