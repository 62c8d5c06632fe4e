/* Neighbourhood collectives of every form on every kind of topology: `neighbours DIRECTORY`, with at least 4 ranks. Each rank counts the
 * messages and bytes for each destination by the definition of the operations, checks what it receives, and writes a line
 * `p2p DESTINATION MESSAGES BYTES` for each destination to DIRECTORY/RANK.txt. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, BLOCK = 50 };

static int rank, size;
static long messages[64], bytes[64];

static void check(int fine, int line)
{
    if (fine) return;
    fprintf(stderr, "neighbours: rank %d: line %d\n", rank, line);
    MPI_Abort(MPI_COMM_WORLD, 9);
}
#define CHECK(x) check(x, __LINE__)

/* The neighbours of this process, by the functions of each kind of topology. */
static void neighbours(MPI_Comm comm, int *in, int *from, int *out, int *to)
{
    int kind, weights[MOST], weighted;
    *in = *out = 0;
    MPI_Topo_test(comm, &kind);
    if (kind == MPI_CART) {
        int dimensions;
        MPI_Cartdim_get(comm, &dimensions);
        for (int d = 0; d < dimensions; d++) MPI_Cart_shift(comm, d, 1, from + 2 * d, from + 2 * d + 1);
        *in = *out = 2 * dimensions;
        memcpy(to, from, *in * sizeof *from);
    } else if (kind == MPI_GRAPH) {
        int own;
        MPI_Comm_rank(comm, &own);
        MPI_Graph_neighbors_count(comm, own, in);
        MPI_Graph_neighbors(comm, own, *in, from);
        *out = *in;
        memcpy(to, from, *in * sizeof *from);
    } else {
        MPI_Dist_graph_neighbors_count(comm, in, out, &weighted);
        MPI_Dist_graph_neighbors(comm, *in, from, weights, *out, to, weights);
    }
}

/* Starts one operation in one of three ways, and completes it. */
#define EITHER(name, iname, init, ...)                                                                   \
    switch (way) {                                                                                       \
    case 0: name(__VA_ARGS__); break;                                                                    \
    case 1: iname(__VA_ARGS__, &q); MPI_Wait(&q, MPI_STATUS_IGNORE); break;                              \
    default: init                                                                                        \
    }
#if MPI_VERSION >= 4
#define PERSISTENT(init, ...)                                                                            \
    init(__VA_ARGS__, MPI_INFO_NULL, &q);                                                                \
    for (int turn = 0; turn < turns; turn++) MPI_Start(&q), MPI_Wait(&q, MPI_STATUS_IGNORE);             \
    MPI_Request_free(&q);
enum { WAYS = 3 };
#else
#define PERSISTENT(init, ...)
enum { WAYS = 2 };
#endif

static void some_forms(MPI_Comm comm, int forms)
{
    int in, out, from[MOST], to[MOST], own, world[MOST];
    MPI_Request q;
    MPI_Group group, everybody;
    static int a[MOST * BLOCK], b[MOST * BLOCK];
    int counts_out[MOST], counts_in[MOST], places[MOST];
    MPI_Aint byte_places[MOST];
    MPI_Datatype types[MOST];
    neighbours(comm, &in, from, &out, to);
    MPI_Comm_rank(comm, &own);
    MPI_Comm_group(comm, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    for (int i = 0; i < out; i++) {
        world[i] = MPI_PROC_NULL;
        if (to[i] != MPI_PROC_NULL) MPI_Group_translate_ranks(group, 1, to + i, everybody, world + i);
    }
    for (int i = 0; i < MOST; i++) places[i] = i * BLOCK, byte_places[i] = 4 * i * BLOCK, types[i] = MPI_INT;
    for (int way = 0; way < WAYS; way++)
        for (int form = 0; form < forms; form++) {
            int n = 3 + form, turns = way == 2 ? 3 : 1;
            /* Between two ranks all blocks of a vector form are equal: both ends know the sum of their ranks. */
            for (int i = 0; i < out; i++) counts_out[i] = to[i] == MPI_PROC_NULL ? 7 : 1 + own + to[i];
            for (int i = 0; i < in; i++) counts_in[i] = from[i] == MPI_PROC_NULL ? 7 : 1 + own + from[i];
            if (form == 1) for (int i = 0; i < in; i++) counts_in[i] = n;
            for (int i = 0; i < MOST * BLOCK; i++) a[i] = own, b[i] = -1;
            switch (form) {
            case 0: EITHER(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, PERSISTENT(MPI_Neighbor_allgather_init, a, n, MPI_INT, b, n, MPI_INT, comm), a, n, MPI_INT, b, n, MPI_INT, comm) break;
            case 1: EITHER(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, PERSISTENT(MPI_Neighbor_allgatherv_init, a, n, MPI_INT, b, counts_in, places, MPI_INT, comm), a, n, MPI_INT, b, counts_in, places, MPI_INT, comm) break;
            case 2: EITHER(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, PERSISTENT(MPI_Neighbor_alltoall_init, a, n, MPI_INT, b, n, MPI_INT, comm), a, n, MPI_INT, b, n, MPI_INT, comm) break;
            case 3: EITHER(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, PERSISTENT(MPI_Neighbor_alltoallv_init, a, counts_out, places, MPI_INT, b, counts_in, places, MPI_INT, comm), a, counts_out, places, MPI_INT, b, counts_in, places, MPI_INT, comm) break;
            default: EITHER(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, PERSISTENT(MPI_Neighbor_alltoallw_init, a, counts_out, byte_places, types, b, counts_in, byte_places, types, comm), a, counts_out, byte_places, types, b, counts_in, byte_places, types, comm) break;
            }
            for (int i = 0; i < in; i++) {
                int place = form == 0 || form == 2 ? i * n : places[i];
                CHECK(b[place] == (from[i] == MPI_PROC_NULL ? -1 : from[i]));
            }
            for (int i = 0; i < out; i++)
                if (world[i] != MPI_PROC_NULL) {
                    messages[world[i]] += turns;
                    bytes[world[i]] += 4l * turns * (form < 3 ? n : counts_out[i]);
                }
        }
    MPI_Group_free(&group);
    MPI_Group_free(&everybody);
}

static void all_forms(MPI_Comm comm)
{
    some_forms(comm, 5);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm comm, copy;
    int line[1] = { size }, open[1] = { 0 }, closed[1] = { 1 };
    MPI_Cart_create(MPI_COMM_WORLD, 1, line, open, 0, &comm);
    all_forms(comm);
    MPI_Comm_free(&comm);
    MPI_Cart_create(MPI_COMM_WORLD, 1, line, closed, 0, &comm);
    all_forms(comm);
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_free(&comm);
    all_forms(copy);
    MPI_Comm_free(&copy);
    /* In a ring of two both neighbours are the same. */
    int grid[2] = { 2, size / 2 }, mixed[2] = { 1, 0 };
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, mixed, 0, &comm);
    if (comm != MPI_COMM_NULL) all_forms(comm), MPI_Comm_free(&comm);
    /* A graph whose first node is everybody's neighbour. */
    int *index = malloc(size * sizeof *index), *edges = malloc(2 * size * sizeof *edges);
    for (int i = 1; i < size; i++) edges[i - 1] = i, edges[size + i - 2] = 0;
    for (int i = 0; i < size; i++) index[i] = size - 1 + i;
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm);
    all_forms(comm);
    MPI_Comm_free(&comm);
    /* Twice to the next rank, once to the one behind it and once to itself; on a communicator with reversed ranks. */
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    int own = size - 1 - rank;
    int to[4] = { (own + 1) % size, own, (own + 1) % size, (own + 2) % size };
    int from[4] = { (own + size - 2) % size, (own + size - 1) % size, (own + size - 1) % size, own };
    MPI_Dist_graph_create_adjacent(reversed, 4, from, MPI_UNWEIGHTED, 4, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    all_forms(comm);
    MPI_Comm_free(&comm);
    /* Rank 0 gives all edges; those of rank 1 lead nowhere. */
    int sources[1] = { 0 }, degrees[1] = { rank == 0 ? size - 1 : 0 };
    for (int i = 1; i < size; i++) edges[i - 1] = i;
    MPI_Dist_graph_create(MPI_COMM_WORLD, rank == 0, sources, degrees, edges, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    /* Where it sends nothing, MPICH 4.0 receives nothing in MPI_Neighbor_alltoallw. */
    some_forms(comm, 4);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&reversed);
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.txt", argv[1], rank);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < size; i++)
        if (messages[i]) fprintf(file, "p2p %d %ld %ld\n", i, messages[i], bytes[i]);
    fclose(file);
    if (rank == 0) printf("fine\n");
    MPI_Finalize();
    return 0;
}
