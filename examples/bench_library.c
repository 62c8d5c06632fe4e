/* A library for `vef bench coll --library`: an operation `halo` (each rank exchanges edges with both neighbours on a ring, and the
 * expected result is checked), and two algorithms for Bcast: `relay`, from each rank to the next, and `forgetful`, which is wrong at the last
 * rank behind the first eight bytes, and so is found out before it is timed with more.
 *
 *     mpicc -shared -fPIC -I collbench/include -o mine.so examples/bench_library.c
 *     mpirun -n 2 vef bench coll --library ./mine.so --op halo
 *     mpirun -n 2 vef bench coll --library ./mine.so --op bcast --algorithm mpi,relay */
#include "vef_bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    MPI_Comm comm;
    int rank, ranks;
    size_t bytes;
    char *edges[2], *ghosts[2];
} Halo;

static int prepare(MPI_Comm comm, int root, size_t bytes, void **state) {
    Halo *halo = malloc(sizeof *halo);
    (void)root;
    halo->comm = comm;
    halo->bytes = bytes;
    MPI_Comm_rank(comm, &halo->rank);
    MPI_Comm_size(comm, &halo->ranks);
    for (int side = 0; side < 2; side++) {
        halo->edges[side] = malloc(bytes + 1);
        halo->ghosts[side] = malloc(bytes + 1);
        memset(halo->edges[side], 2 * halo->rank + side, bytes);
        memset(halo->ghosts[side], -1, bytes);
    }
    *state = halo;
    return MPI_SUCCESS;
}

static int run(void *state) {
    Halo *halo = state;
    MPI_Request requests[4];
    int count = (int)halo->bytes, neighbours[2] = {(halo->rank + halo->ranks - 1) % halo->ranks, (halo->rank + 1) % halo->ranks};
    for (int side = 0; side < 2; side++) {
        MPI_Irecv(halo->ghosts[side], count, MPI_BYTE, neighbours[side], 1 - side, halo->comm, &requests[side]);
        MPI_Isend(halo->edges[side], count, MPI_BYTE, neighbours[side], side, halo->comm, &requests[2 + side]);
    }
    int code = MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
#ifdef BROKEN
    /* For those who want to see what a failed check looks like. */
    halo->ghosts[1][0]++;
#endif
    return code;
}

static int check(void *state, char *text, size_t room) {
    Halo *halo = state;
    for (int side = 0; side < 2; side++) {
        int neighbour = (halo->rank + (side ? 1 : halo->ranks - 1)) % halo->ranks;
        for (size_t i = 0; i < halo->bytes; i++)
            if (halo->ghosts[side][i] != (char)(2 * neighbour + 1 - side)) {
                snprintf(text, room, "byte %zu from rank %d is %d", i, neighbour, halo->ghosts[side][i]);
                return 1;
            }
    }
    return 0;
}

static void release(void *state) {
    Halo *halo = state;
    for (int side = 0; side < 2; side++) free(halo->edges[side]), free(halo->ghosts[side]);
    free(halo);
}

static int relay(const void *input, void *output, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm) {
    int rank, ranks, code = MPI_SUCCESS;
    (void)input, (void)op;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int place = (rank - root + ranks) % ranks;
    if (place > 0) code = MPI_Recv(output, count, datatype, (rank + ranks - 1) % ranks, 0, comm, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && place + 1 < ranks) code = MPI_Send(output, count, datatype, (rank + 1) % ranks, 0, comm);
    return code;
}

static int forgetful(const void *input, void *output, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm) {
    int rank, ranks, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Type_size(datatype, &size);
    int code = relay(input, output, count, datatype, op, root, comm);
    if (count * size > 8 && (rank - root + ranks) % ranks == ranks - 1) ((char *)output)[8] ^= 1;
    return code;
}

int vef_bench_register(vef_bench *bench) {
    static const vef_bench_operation halo = {prepare, run, check, release};
    return bench->abi != VEF_BENCH_ABI || bench->operation(bench, "halo", &halo) || bench->algorithm(bench, "bcast", "relay", relay) ||
           bench->algorithm(bench, "bcast", "forgetful", forgetful);
}
