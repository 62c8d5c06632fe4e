/* One-sided communication as a program should not use it, or by several threads: `windows_hostile MODE`, with 3 ranks. Calls that fail do so without
 * ending the program. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 1024, THREADS = 3, ROUNDS = 20 };

static int rank, size, next, memory[WORDS], own[WORDS];
static MPI_Win win;

static void put(MPI_Win win, int target, int count)
{
    MPI_Put(own, count, MPI_INT, target, 16 * rank, count, MPI_INT, win);
}

static void get(MPI_Win win, int target, int count)
{
    MPI_Get(own, count, MPI_INT, target, 512, count, MPI_INT, win);
}

/* Rank 0 is killed between a put that it has flushed and transfers that nothing has completed; the others wait in vain. */
static void killed(void)
{
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
        put(win, next, 10);
        MPI_Win_flush(next, win);
        put(win, next, 20);
        get(win, next, 30);
        raise(SIGKILL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Epochs of all kinds that never end. */
static void open_epochs(void)
{
    MPI_Group all, right, left;
    int before = (rank + size - 1) % size;
    MPI_Win other;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &next, &right);
    MPI_Group_incl(all, 1, &before, &left);
    MPI_Win_post(left, 0, win);
    MPI_Win_start(right, 0, win);
    put(win, next, 10);
    MPI_Win_lock_all(0, other);
    put(other, next, 20);
    get(other, next, 30);
    MPI_Win_flush_local(next, other);
    put(other, next, 40);
#ifndef OPEN_MPI
    /* MPICH's MPI_Finalize waits for the epochs. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Abort(MPI_COMM_WORLD, 3);
#endif
}

/* A transfer and synchronisations without an epoch, a lock in a lock. */
static void overlapping(void)
{
    put(win, next, 1);
    MPI_Win_unlock(next, win);
    MPI_Win_complete(win);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
    put(win, next, 10);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
    MPI_Win_lock_all(0, win);
    MPI_Win_flush(next, win);
    put(win, next, 20);
    MPI_Win_unlock(next, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each thread with a window of its own. */
static void *in_thread(void *of)
{
    MPI_Win win = *(MPI_Win *)of;
    int one = 1, result;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < ROUNDS; i++) {
        put(win, next, 10);
        get(win, next, 20);
        MPI_Win_flush(next, win);
        MPI_Fetch_and_op(&one, &result, MPI_INT, next, 1000, MPI_SUM, win);
        MPI_Win_flush(next, win);
    }
    MPI_Win_unlock_all(win);
    return NULL;
}

static void threads(void)
{
    pthread_t threads[THREADS];
    MPI_Win windows[THREADS];
    for (int i = 0; i < THREADS; i++) MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, windows + i);
    for (int i = 0; i < THREADS; i++) pthread_create(threads + i, NULL, in_thread, windows + i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) MPI_Win_free(windows + i);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (strcmp(argv[1], "killed") == 0) killed();
    if (strcmp(argv[1], "open") == 0) open_epochs();
    if (strcmp(argv[1], "overlapping") == 0) overlapping();
    if (strcmp(argv[1], "threads") == 0) threads();
    MPI_Finalize();
    return 0;
}
