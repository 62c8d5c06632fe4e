/* Partitioned communication: `partitioned DIRECTORY`, with an even number of ranks. Each rank counts the messages and bytes that it sends to
 * each other, one message for each partition of the sender, checks what it receives, and writes a line
 * `p2p DESTINATION MESSAGES BYTES` for each destination to DIRECTORY/RANK.txt. Without MPI 4 there is nothing to count. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;
static long messages[64], bytes[64];

static void check(int fine, int line)
{
    if (fine) return;
    fprintf(stderr, "partitioned: rank %d: line %d\n", rank, line);
    MPI_Abort(MPI_COMM_WORLD, 9);
}
#define CHECK(x) check(x, __LINE__)

#if MPI_VERSION >= 4
enum { MOST = 24 };
static int out[3][MOST], in[3][MOST];

/* Makes all partitions ready, in one of several ways. */
static void ready(int way, int partitions, MPI_Request q)
{
    int list[MOST];
    switch (way) {
    case 0: for (int i = 0; i < partitions; i++) MPI_Pready(i, q); break;
    case 1: for (int i = partitions; i-- > 0;) MPI_Pready(i, q); break;
    case 2: MPI_Pready_range(0, partitions - 1, q); break;
    default:
        for (int i = 0; i < partitions; i++) list[i] = (i + partitions / 2) % partitions;
        MPI_Pready_list(partitions, list, q);
    }
}

/* Every rank sends `sent` partitions to the next and receives them as `received`; together MOST integers. */
static void around(MPI_Comm comm, int sent, int received, int way)
{
    MPI_Request q[2];
    MPI_Status statuses[2];
    int to = (rank + 1) % size, from = (rank + size - 1) % size, flag;
    MPI_Psend_init(out[0], sent, MOST / sent, MPI_INT, to, 7, comm, MPI_INFO_NULL, q);
    MPI_Precv_init(in[0], received, MOST / received, MPI_INT, from, 7, comm, MPI_INFO_NULL, q + 1);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < MOST; i++) out[0][i] = 1000 * rank + turn, in[0][i] = -1;
        if (turn == 0) MPI_Startall(2, q);
        else MPI_Start(q + 1), MPI_Start(q);
        ready(way, sent, q[0]);
        messages[to] += sent, bytes[to] += 4 * MOST;
        if (way % 2)
            for (int i = received; i-- > 0;)
                for (flag = 0; !flag;) MPI_Parrived(q[1], i, &flag);
        if (way == 3) {
            for (flag = 0; !flag;) MPI_Test(q + 1, &flag, statuses);
            MPI_Wait(q, MPI_STATUS_IGNORE);
        } else MPI_Waitall(2, q, statuses);
        for (int i = 0; i < MOST; i++) CHECK(in[0][i] == 1000 * from + turn);
    }
    MPI_Request_free(q);
    MPI_Request_free(q + 1);
}

/* Three transfers at once between the same ranks with the same tag, and an ordinary message: each end starts them in another order. */
static void several(MPI_Comm comm)
{
    static const int partitions[] = { 2, 3, 4 };
    MPI_Request sends[3], receives[3];
    int to = rank ^ 1, word = rank, other = -1;
    for (int i = 0; i < 3; i++) {
        MPI_Psend_init(out[i], partitions[i], 12 / partitions[i], MPI_INT, to, 3, comm, MPI_INFO_NULL, sends + i);
        MPI_Precv_init(in[i], partitions[i], 12 / partitions[i], MPI_INT, to, 3, comm, MPI_INFO_NULL, receives + i);
    }
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 12; k++) out[i][k] = 100 * i + rank, in[i][k] = -1;
        for (int i = 0; i < 3; i++) MPI_Start(receives + (i + rank) % 3);
        for (int i = 3; i-- > 0;) MPI_Start(sends + (i + rank + turn) % 3);
        for (int i = 0; i < 3; i++) {
            ready(i, partitions[i], sends[i]);
            messages[to] += partitions[i], bytes[to] += 48;
        }
        MPI_Sendrecv(&word, 1, MPI_INT, to, 3, &other, 1, MPI_INT, to, 3, comm, MPI_STATUS_IGNORE);
        messages[to]++, bytes[to] += 4;
        CHECK(other == to);
        MPI_Waitall(3, receives, MPI_STATUSES_IGNORE);
        MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 12; k++) CHECK(in[i][k] == 100 * i + to);
    }
    for (int i = 0; i < 3; i++) MPI_Request_free(sends + i), MPI_Request_free(receives + i);
}

static MPI_Request shared;

static void *ready_half(void *begin)
{
    int first = *(int *)begin;
    for (int i = first; i < first + 4; i++) MPI_Pready(i, shared);
    return NULL;
}

/* Threads make partitions of one request ready. */
static void by_threads(MPI_Comm comm)
{
    int to = rank ^ 1, begins[2] = { 0, 4 };
    MPI_Request receive;
    pthread_t threads[2];
    MPI_Psend_init(out[0], 8, 3, MPI_INT, to, 9, comm, MPI_INFO_NULL, &shared);
    MPI_Precv_init(in[0], 8, 3, MPI_INT, to, 9, comm, MPI_INFO_NULL, &receive);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 24; i++) out[0][i] = rank + turn, in[0][i] = -1;
        MPI_Start(&receive);
        MPI_Start(&shared);
        for (int i = 0; i < 2; i++) pthread_create(threads + i, NULL, ready_half, begins + i);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        messages[to] += 8, bytes[to] += 96;
        MPI_Wait(&shared, MPI_STATUS_IGNORE);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        for (int i = 0; i < 24; i++) CHECK(in[0][i] == to + turn);
    }
    MPI_Request_free(&shared);
    MPI_Request_free(&receive);
}

static void all(int has_threads)
{
    MPI_Comm copy;
    MPI_Request q;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int way = 0; way < 4; way++) {
        around(MPI_COMM_WORLD, 6, 6, way);
        around(copy, 8, 3, way);
        around(MPI_COMM_WORLD, 1, 12, way);
        around(copy, 12, 1, way);
    }
    several(copy);
    if (has_threads) by_threads(MPI_COMM_WORLD);
    /* Never started; and nobody. */
    MPI_Psend_init(out[0], 4, 1, MPI_INT, (rank + 1) % size, 11, copy, MPI_INFO_NULL, &q);
    MPI_Request_free(&q);
    MPI_Precv_init(in[0], 4, 1, MPI_INT, (rank + size - 1) % size, 11, copy, MPI_INFO_NULL, &q);
    MPI_Request_free(&q);
    MPI_Comm_free(&copy);
}
#else
static void all(int has_threads)
{
    CHECK(has_threads >= 0);
}
#endif

int main(int argc, char **argv)
{
    int provided;
    char path[4096];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    all(provided == MPI_THREAD_MULTIPLE);
    snprintf(path, sizeof path, "%s/%d.txt", argv[1], rank);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < size; i++)
        if (messages[i]) fprintf(file, "p2p %d %ld %ld\n", i, messages[i], bytes[i]);
    fclose(file);
    if (rank == 0) printf("fine\n");
    MPI_Finalize();
    return 0;
}
