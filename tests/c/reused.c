/* Under MPI_THREAD_MULTIPLE: while a thread is about to return from MPI_Wait, another one is given the handle of that request for one of its
 * own. Says whether that was so. `unknown`: the first is of a neighbourhood operation; `freed`: it is a receive, and the
 * second thread's are persistent ones that it frees at once; `nowhere`: as `freed`, but they are
 * from MPI_PROC_NULL and are started and waited for; `cancelled`: as `freed`, but they are cancelled, and freed or waited for;
 * `matched`: MPI_Mrecv instead of MPI_Wait, and messages. Runs alone (one rank); the tool late_return.c calls wait_is_over. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MANY = 64 };
static MPI_Request waited, theirs[2 * MANY];
static MPI_Comm other;
static MPI_Status statuses[2 * MANY];
static MPI_Message taken;
static int turn, reused, freed, nowhere, cancelled, matched, unknown, in[MANY];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void next_turn(int from)
{
    pthread_mutex_lock(&lock);
    if (turn == from) turn = from + 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void await(int which)
{
    pthread_mutex_lock(&lock);
    while (turn < which) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* Called by the tool: MPI is done with the request, the recorder is not. */
void wait_is_over(void)
{
    if (turn != 0) return;
    next_turn(0);
    await(2);
}

static void *second(void *unused)
{
    await(1);
    for (int i = 0; i < MANY && matched; i++) {
        MPI_Message message;
        MPI_Mprobe(0, i, other, &message, MPI_STATUS_IGNORE);
        reused += message == taken;
        MPI_Mrecv(in + i, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < MANY && cancelled; i++) {
        MPI_Irecv(in + i, 1, MPI_INT, 0, i, other, theirs + i);
        reused += theirs[i] == waited;
        MPI_Cancel(theirs + i);
        if (i % 2) MPI_Waitall(1, theirs + i, statuses);
        else MPI_Request_free(theirs + i);
    }
    for (int i = 0; i < MANY && freed; i++) {
        MPI_Recv_init(in + i, 1, MPI_INT, nowhere ? MPI_PROC_NULL : 0, i, other, theirs + i);
        reused += theirs[i] == waited;
    }
    if (nowhere) MPI_Startall(MANY, theirs), MPI_Waitall(MANY, theirs, statuses);
    for (int i = 0; i < MANY && freed; i++) MPI_Request_free(theirs + i);
    for (int i = 0; i < MANY && unknown; i++) {
        MPI_Irecv(in + i, 1, MPI_INT, 0, i, other, theirs + i);
        MPI_Ibarrier(other, theirs + MANY + i);
        reused += theirs[i] == waited || theirs[MANY + i] == waited;
    }
    next_turn(1);
    await(3);
    if (unknown) MPI_Waitall(2 * MANY, theirs, statuses);
    return unused;
}

int main(int argc, char **argv)
{
    int provided, dims[1] = { 1 }, periods[1] = { 1 }, out = 7, around[2];
    pthread_t thread;
    MPI_Comm ring;
    MPI_Request request;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
    nowhere = !strcmp(argv[1], "nowhere");
    freed = nowhere || !strcmp(argv[1], "freed");
    cancelled = !strcmp(argv[1], "cancelled");
    matched = !strcmp(argv[1], "matched");
    unknown = !strcmp(argv[1], "unknown");
    for (int i = 0; i < MANY && matched; i++) MPI_Isend(&out, 1, MPI_INT, 0, i, other, theirs + i);
    pthread_create(&thread, NULL, second, NULL);
    if (matched) {
        MPI_Message message;
        MPI_Isend(&out, 1, MPI_INT, 0, 1, ring, theirs + MANY);
        MPI_Mprobe(0, 1, ring, &message, MPI_STATUS_IGNORE);
        taken = message;
        MPI_Mrecv(around, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        MPI_Waitall(MANY + 1, theirs, statuses);
        request = MPI_REQUEST_NULL;
    } else if (!unknown) {
        MPI_Irecv(around, 1, MPI_INT, MPI_ANY_SOURCE, 1, ring, &request);
        MPI_Send(&out, 1, MPI_INT, 0, 1, ring);
    } else {
        MPI_Ineighbor_allgather(&out, 1, MPI_INT, around, 1, MPI_INT, ring, &request);
    }
    waited = request;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < MANY && unknown; i++) MPI_Send(&out, 1, MPI_INT, 0, i, other);
    next_turn(2);
    pthread_join(thread, NULL);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&other);
    MPI_Finalize();
    puts(reused ? "reused" : "not reused");
    return 0;
}
