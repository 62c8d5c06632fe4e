/* Collectives between two groups, of every form and from roots in both: `groups DIRECTORY`, with 3 ranks, of which the last two are a group.
 * Each rank checks what it receives, counts the messages and bytes that its MPI sends to each other, and writes a line
 * `p2p DESTINATION MESSAGES BYTES` for each destination to DIRECTORY/RANK.txt. */
#include <mpi.h>
#include <stdio.h>
#include "between_groups.h"

static long messages[3], bytes[3];

static void sent(int world, long count)
{
    messages[world]++, bytes[world] += count;
}

int main(int argc, char **argv)
{
    MPI_Comm half;
    char path[4096];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int high = rank > 0;
    MPI_Comm_split(MPI_COMM_WORLD, high, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, high ? 0 : 1, 1, &g.inter);
    MPI_Comm_rank(g.inter, &g.own), MPI_Comm_size(g.inter, &g.mine), MPI_Comm_remote_size(g.inter, &g.others);
    for (int i = 0; i < 2; i++) (high ? g.group : g.other)[i] = 1 + i;
    g.n = 5;
    for (g.way = 0; g.way < WAYS; g.way++)
        for (int what = 0; what < ALL; what++)
            for (int root = 0; root < 3; root++)
                if (!is_broken(what, root)) call_between(what, root);
    /* Two that do not block, with a message between them. */
    g.way = 1, g.n = 1;
    int x = rank, y = -1, z = 0, w = -1;
    MPI_Request q[2];
    MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, g.inter, q);
    MPI_Iallreduce(&z, &w, 1, MPI_INT, MPI_SUM, g.inter, q + 1);
    if (g.own == 0) {
        MPI_Sendrecv(&x, 1, MPI_INT, 0, 1, &z, 1, MPI_INT, 0, 1, g.inter, MPI_STATUS_IGNORE);
        sent(g.other[0], INT);
    }
    MPI_Waitall(2, (MPI_Request[]) { q[1], q[0] }, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) count_sent(ALLREDUCE, -1, 0);
    MPI_Comm_free(&g.inter);
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
