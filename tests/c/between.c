/* Messages between two groups of ranks, in every way in which messages are sent and received: `between DIRECTORY`, with at least 3 ranks. Each
 * rank counts its messages and bytes for each destination, checks what it receives, and writes a line `p2p DESTINATION MESSAGES BYTES`
 * for each destination to DIRECTORY/RANK.txt. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;
static long messages[64], bytes[64];

static void check(int fine, int line)
{
    if (fine) return;
    fprintf(stderr, "between: rank %d: line %d\n", rank, line);
    MPI_Abort(MPI_COMM_WORLD, 9);
}
#define CHECK(x) check(x, __LINE__)

static int world_rank_of(MPI_Comm comm, int peer)
{
    MPI_Group group, world;
    int found;
    MPI_Comm_remote_group(comm, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(group, 1, &peer, world, &found);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    return found;
}

static void count(MPI_Comm comm, int to, int integers)
{
    int world = world_rank_of(comm, to);
    messages[world]++;
    bytes[world] += 4 * integers;
}

/* Everybody sends `n` integers to everybody in the other group, and receives in one of several ways. */
static void exchange(MPI_Comm inter, int n)
{
    int others, tag, own;
    MPI_Comm_remote_size(inter, &others);
    MPI_Comm_rank(inter, &own);
    static int out[100], in[64][100];
    MPI_Request q[128];
    MPI_Status status;
    MPI_Message message;
    for (int i = 0; i < 100; i++) out[i] = rank;
    for (tag = 0; tag < 6; tag++) {
        for (int i = 0; i < others; i++) {
            if (tag == 3) MPI_Recv_init(in[i], 100, MPI_INT, i, tag, inter, q + i), MPI_Start(q + i);
            else if (tag < 2) MPI_Irecv(in[i], 100, MPI_INT, tag ? MPI_ANY_SOURCE : i, tag, inter, q + i);
            else q[i] = MPI_REQUEST_NULL;
        }
        for (int i = 0; i < others; i++) {
            if (tag == 3) MPI_Send_init(out, n, MPI_INT, i, tag, inter, q + others + i), MPI_Start(q + others + i);
            else MPI_Isend(out, n + own, MPI_INT, i, tag, inter, q + others + i);
            count(inter, i, tag == 3 ? n : n + own);
        }
        for (int i = 0; i < others; i++) {
            if (tag == 2) MPI_Probe(i, tag, inter, &status), MPI_Recv(in[i], 100, MPI_INT, i, tag, inter, MPI_STATUS_IGNORE);
            if (tag == 4) MPI_Mprobe(i, tag, inter, &message, &status), MPI_Mrecv(in[i], 100, MPI_INT, &message, &status);
            if (tag == 5) MPI_Recv(in[i], 100, MPI_INT, MPI_ANY_SOURCE, tag, inter, &status);
        }
        MPI_Waitall(2 * others, q, MPI_STATUSES_IGNORE);
        if (tag == 3) for (int i = 0; i < 2 * others; i++) MPI_Request_free(q + i);
        if (tag != 1 && tag != 5) for (int i = 0; i < others; i++) CHECK(in[i][0] == world_rank_of(inter, i));
    }
    /* In both directions at once, between those with the same rank. */
    int peer = own < others ? own : MPI_PROC_NULL;
    MPI_Sendrecv(out, n, MPI_INT, peer, 9, in[0], 100, MPI_INT, peer, 9, inter, &status);
    if (peer != MPI_PROC_NULL) count(inter, peer, n), CHECK(in[0][0] == world_rank_of(inter, peer));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half, inter, again, copy, part;
    /* The last ranks are a group; in it they are in reverse. */
    int low = rank < (size + 1) / 2;
    MPI_Comm_split(MPI_COMM_WORLD, low, low ? rank : -rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size - 1 : 0, 7, &inter);
    exchange(inter, 10);
    /* The same groups again. */
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size - 1 : 0, 8, &again);
    exchange(again, 20);
    MPI_Comm_dup(inter, &copy);
    exchange(copy, 30);
    MPI_Comm_free(&inter);
    exchange(again, 1);
    /* The first of each group, and the others. */
    int own, others;
    MPI_Comm_rank(half, &own);
    MPI_Comm_remote_size(copy, &others);
    int both = others > 1 && size / 2 > 1;
    MPI_Comm_split(copy, both ? own == 0 : 0, 0, &part);
    exchange(part, 40);
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&again);
    MPI_Comm_free(&half);
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
