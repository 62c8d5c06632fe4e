/* One-sided communication of every kind: `windows DIRECTORY`, with at least 3 ranks. Each rank counts the messages that docs/mixing.md names, those that
 * targets send included, and the sums are written as lines `p2p DESTINATION MESSAGES BYTES` to DIRECTORY/RANK.txt. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, WORDS = 1024 };

static int rank, size;
static long messages[MOST * MOST], bytes[MOST * MOST];
/* The targets, as ranks of the world, with transfers that no answer has confirmed. */
static int open_at[MOST];

static void moved(int from, int to, long n)
{
    messages[from * size + to]++;
    bytes[from * size + to] += n;
}

static void put(int to, long n)
{
    if (n == 0) return;
    moved(rank, to, n);
    if (to != rank) open_at[to] = 1;
}

static void fetch(int from, long sent, long fetched)
{
    if (from == rank) {
        moved(rank, rank, sent + fetched);
        return;
    }
    moved(rank, from, sent);
    moved(from, rank, fetched);
}

static void flush(int to)
{
    if (to == rank || !open_at[to]) return;
    moved(to, rank, 0);
    open_at[to] = 0;
}

static void flush_all(void)
{
    for (int i = 0; i < size; i++) flush(i);
}

static void on(MPI_Comm comm, int first_is_world)
{
    static int memory[WORDS];
    int a[16] = { rank }, b[16], own, n = 5;
    MPI_Win win;
    MPI_Request q[2];
    MPI_Comm_rank(comm, &own);
    /* Of the reversed communicator rank i is rank size - 1 - i of the world. */
#define WORLD(i) (first_is_world ? (i) : size - 1 - (i))
    int right = (own + 1) % size, left = (own + size - 1) % size, next = (own + 2) % size;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, comm, &win);

    MPI_Win_fence(0, win);
    MPI_Put(a, n, MPI_INT, right, 16 * own, n, MPI_INT, win), put(WORLD(right), 4 * n);
    MPI_Put(a, 0, MPI_INT, right, 0, 0, MPI_INT, win);
    MPI_Put(a, n, MPI_INT, MPI_PROC_NULL, 0, n, MPI_INT, win);
    MPI_Put(a, 2, MPI_INT, own, 16 * own, 2, MPI_INT, win), put(rank, 8);
    MPI_Get(b, 7, MPI_INT, left, 512, 7, MPI_INT, win), fetch(WORLD(left), 0, 28);
    MPI_Get(b, 0, MPI_INT, left, 512, 0, MPI_INT, win);
    MPI_Accumulate(a, 3, MPI_INT, next, 16 * own + 8, 3, MPI_INT, MPI_SUM, win), put(WORLD(next), 12);
    MPI_Win_fence(0, win), memset(open_at, 0, sizeof open_at);
    MPI_Get(b, 2, MPI_INT, own, 512, 2, MPI_INT, win), fetch(rank, 0, 8);
    MPI_Win_fence(0, win), memset(open_at, 0, sizeof open_at);

    MPI_Group all, near;
    int members[2] = { left, right }, done = 0;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, 2, members, &near);
    for (int round = 0; round < 2; round++) {
        MPI_Win_post(near, 0, win), moved(rank, WORLD(left), 0), moved(rank, WORLD(right), 0);
        MPI_Win_start(near, 0, win);
        MPI_Put(a, 4, MPI_INT, right, 16 * own, 4, MPI_INT, win), put(WORLD(right), 16);
        MPI_Get(b, 6, MPI_INT, left, 512, 6, MPI_INT, win), fetch(WORLD(left), 0, 24);
        MPI_Win_complete(win), moved(rank, WORLD(left), 0); /* The put tells the other that the epoch is over. */
        memset(open_at, 0, sizeof open_at);
        if (round) MPI_Win_wait(win);
        else while (!done) MPI_Win_test(win, &done);
    }
    MPI_Group_free(&near);
    MPI_Group_free(&all);

    for (int round = 0; round < 2; round++) {
        MPI_Win_lock(round ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, right, 0, win), fetch(WORLD(right), 0, 0);
        MPI_Fetch_and_op(a, b, MPI_INT, right, 900, MPI_SUM, win), fetch(WORLD(right), 4, 4);
        MPI_Win_flush(right, win);
        MPI_Accumulate(a, 1, MPI_INT, right, 901, 1, MPI_INT, MPI_SUM, win), put(WORLD(right), 4);
        MPI_Win_flush(right, win), flush(WORLD(right));
        MPI_Win_flush(right, win);
        MPI_Win_unlock(right, win), fetch(WORLD(right), 0, 0);
    }
    MPI_Win_lock(MPI_LOCK_SHARED, own, 0, win);
    MPI_Win_unlock(own, win);

    MPI_Win_lock_all(0, win);
    MPI_Rput(a, 3, MPI_INT, next, 16 * own, 3, MPI_INT, win, q), put(WORLD(next), 12);
    MPI_Rget(b, 9, MPI_INT, left, 512, 9, MPI_INT, win, q + 1), fetch(WORLD(left), 0, 36);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    MPI_Win_flush_local(next, win);
    MPI_Put(a, 1, MPI_INT, right, 16 * own, 1, MPI_INT, win), put(WORLD(right), 4);
    MPI_Win_flush_local_all(win);
    MPI_Win_flush_all(win), flush_all();
    MPI_Get_accumulate(a, 2, MPI_INT, b, 2, MPI_INT, next, 910, 2, MPI_INT, MPI_SUM, win), fetch(WORLD(next), 8, 8);
    MPI_Get_accumulate(NULL, 0, MPI_INT, b, 2, MPI_INT, next, 910, 2, MPI_INT, MPI_NO_OP, win), fetch(WORLD(next), 0, 8);
    MPI_Compare_and_swap(a, a + 1, b, MPI_INT, right, 920, win), fetch(WORLD(right), 8, 4);
    MPI_Fetch_and_op(NULL, b, MPI_INT, right, 921, MPI_NO_OP, win), fetch(WORLD(right), 0, 4);
    MPI_Put(a, 1, MPI_INT, right, 16 * own, 1, MPI_INT, win), put(WORLD(right), 4);
    MPI_Win_unlock_all(win), flush_all();
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm reversed;
    on(MPI_COMM_WORLD, 1);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    on(reversed, 0);
    MPI_Comm_free(&reversed);
    MPI_Allreduce(MPI_IN_PLACE, messages, size * size, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, bytes, size * size, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.txt", argv[1], rank);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < size; i++)
        if (messages[rank * size + i]) fprintf(file, "p2p %d %ld %ld\n", i, messages[rank * size + i], bytes[rank * size + i]);
    fclose(file);
    if (rank == 0) printf("fine\n");
    MPI_Finalize();
    return 0;
}
