/* Executes a plan: for each thread of each rank a list of calls, one a line, as tests/src/threaded.rs writes them.
 *
 *   RANK THREAD s DST TAG BYTES COMM        blocking send            S: synchronous, b: buffered, i REQUEST …: non-blocking
 *   RANK THREAD r SRC TAG COMM              blocking receive (SRC -1: from anybody)
 *   RANK THREAD p SRC TAG COMM REQUEST      receive posted
 *   RANK THREAD w REQUEST…                  waits for all of them
 *   RANK THREAD t REQUEST                   tests until it is over
 *   RANK THREAD c OPERATION COMM ROOT BYTES collective
 *   RANK THREAD x MICROSECONDS              computes
 *   RANK THREAD u N, RANK THREAD d N        semaphore N up, down: what threads tell each other without MPI
 *   COLOR C R0 R1 …                         communicator C (from 1 on) of these ranks
 */
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, COMMS = 16, REQUESTS = 4096, SEMAPHORES = 1024, LINES = 8192, LONGEST = 1 << 17 };

static int rank, ranks;
static MPI_Comm comms[COMMS];
static MPI_Request requests[REQUESTS];
static sem_t semaphores[SEMAPHORES];
static char *lines[THREADS][LINES];
static int count[THREADS];

static void compute(int microseconds)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000L + (now.tv_nsec - from.tv_nsec) / 1000 < microseconds);
}

static void collective(const char *name, MPI_Comm comm, int root, int bytes)
{
    int size;
    MPI_Comm_size(comm, &size);
    char *out = calloc(size + 1, bytes + 8), *in = calloc(size + 1, bytes + 8);
    if (!strcmp(name, "Barrier")) MPI_Barrier(comm);
    else if (!strcmp(name, "Bcast")) MPI_Bcast(out, bytes, MPI_CHAR, root, comm);
    else if (!strcmp(name, "Reduce")) MPI_Reduce(out, in, bytes, MPI_CHAR, MPI_MAX, root, comm);
    else if (!strcmp(name, "Allreduce")) MPI_Allreduce(out, in, bytes, MPI_CHAR, MPI_MAX, comm);
    else if (!strcmp(name, "Allgather")) MPI_Allgather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, comm);
    else if (!strcmp(name, "Alltoall")) MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, comm);
    else abort();
    free(out);
    free(in);
}

static void *thread(void *argument)
{
    const int own = (int)(size_t)argument;
    char *out = calloc(1, LONGEST), *in = calloc(1, LONGEST);
    for (int at = 0; at < count[own]; at++) {
        char what, name[32];
        int a, b, c, d, e, skip;
        const char *rest = lines[own][at];
        sscanf(rest, " %c%n", &what, &skip);
        rest += skip;
        switch (what) {
        case 's':
        case 'S':
        case 'b':
            sscanf(rest, "%d %d %d %d", &a, &b, &c, &d);
            (what == 's' ? MPI_Send : what == 'S' ? MPI_Ssend : MPI_Bsend)(out, c, MPI_CHAR, a, b, comms[d]);
            break;
        case 'i':
            sscanf(rest, "%d %d %d %d %d", &e, &a, &b, &c, &d);
            MPI_Isend(out, c, MPI_CHAR, a, b, comms[d], &requests[e]);
            break;
        case 'r':
            sscanf(rest, "%d %d %d", &a, &b, &c);
            MPI_Recv(in, LONGEST, MPI_CHAR, a < 0 ? MPI_ANY_SOURCE : a, b, comms[c], MPI_STATUS_IGNORE);
            break;
        case 'p':
            sscanf(rest, "%d %d %d %d", &a, &b, &c, &d);
            MPI_Irecv(calloc(1, LONGEST), LONGEST, MPI_CHAR, a < 0 ? MPI_ANY_SOURCE : a, b, comms[c], &requests[d]);
            break;
        case 'w': {
            MPI_Request list[64];
            int n = 0;
            for (; sscanf(rest, "%d%n", &a, &skip) == 1; rest += skip)
                list[n++] = requests[a];
            MPI_Waitall(n, list, MPI_STATUSES_IGNORE);
            break;
        }
        case 't':
            sscanf(rest, "%d", &a);
            for (b = 0; !b;) MPI_Test(&requests[a], &b, MPI_STATUS_IGNORE);
            break;
        case 'c':
            sscanf(rest, "%31s %d %d %d", name, &a, &b, &c);
            collective(name, comms[a], b, c);
            break;
        case 'x':
            sscanf(rest, "%d", &a);
            compute(a);
            break;
        case 'u':
            sscanf(rest, "%d", &a);
            sem_post(&semaphores[a]);
            break;
        case 'd':
            sscanf(rest, "%d", &a);
            sem_wait(&semaphores[a]);
            break;
        default:
            abort();
        }
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, members[64];
    static char line[1 << 16], buffer[1 << 22];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Buffer_attach(buffer, sizeof buffer);
    comms[0] = MPI_COMM_WORLD;
    for (int at = 0; at < SEMAPHORES; at++) sem_init(&semaphores[at], 0, 0);
    FILE *plan = fopen(argv[1], "r");
    if (!plan) MPI_Abort(MPI_COMM_WORLD, 4);
    while (fgets(line, sizeof line, plan)) {
        int of, by, skip, n = 0, comm, inside = 0;
        if (sscanf(line, "COLOR %d%n", &comm, &skip) == 1) {
            const char *rest = line + skip;
            for (; sscanf(rest, "%d%n", &members[n], &skip) == 1; rest += skip) inside |= members[n++] == rank;
            MPI_Comm_split(MPI_COMM_WORLD, inside ? 1 : MPI_UNDEFINED, rank, &comms[comm]);
        } else if (sscanf(line, "%d %d%n", &of, &by, &skip) == 2 && of == rank) {
            lines[by][count[by]++] = strdup(line + skip);
        }
    }
    fclose(plan);
    pthread_t threads[THREADS];
    for (size_t at = 1; at < THREADS; at++)
        if (count[at]) pthread_create(&threads[at], NULL, thread, (void *)at);
    thread((void *)0);
    for (int at = 1; at < THREADS; at++)
        if (count[at]) pthread_join(threads[at], NULL);
    void *detached;
    int size;
    MPI_Buffer_detach(&detached, &size);
    MPI_Finalize();
    return 0;
}
