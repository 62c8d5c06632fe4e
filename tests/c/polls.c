/* Rank 1 waits for a message of rank 0 by polling, and prints the processor time of it in seconds. What it computes is known: twice 0.1 s on a core, and in between as much as rank 0 sleeps
   where it polls every 50 us only (`overlap`); `sleepy`: it sleeps between polls.
   `steps`: rank 1 makes 2000 steps of at least 2 us each, and tests for a message after each, as RandomAccess of HPCC does; then it
   sends, and the message comes.
   `crowd`, `crowd-computes`: all other ranks await a message by tests alone, or use 0.4 ms of processor time behind every 200 of them and print how much of it in all, in
   seconds. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void compute(double seconds)
{
    double end = MPI_Wtime() + seconds;
    while (MPI_Wtime() < end)
        ;
}

/* The same of processor time. */
static void work(double seconds)
{
    clock_t end = clock() + seconds * CLOCKS_PER_SEC;
    while (clock() < end)
        ;
}

/* Until the message is there. */
static void await(const char *how)
{
    int flag = 0, count = 0, index, data;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message;
    if (!strcmp(how, "iprobe")) {
        while (!flag)
            MPI_Iprobe(0, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Recv(&data, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    if (!strcmp(how, "improbe")) {
        while (!flag)
            MPI_Improbe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&data, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Irecv(&data, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
    while (!flag) {
        if (!strcmp(how, "testany"))
            MPI_Testany(1, &request, &index, &flag, MPI_STATUS_IGNORE);
        else if (!strcmp(how, "testall"))
            MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE);
        else if (!strcmp(how, "testsome")) {
            MPI_Testsome(1, &request, &count, &index, MPI_STATUSES_IGNORE);
            flag = count > 0;
        } else if (!strcmp(how, "get_status"))
            MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        else
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        if (!flag && !strcmp(how, "overlap"))
            compute(0.00005);
        if (!flag && !strcmp(how, "sleepy"))
            usleep(500);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void steps(int rank)
{
    int data = 0, flag = 0, i;
    MPI_Request request;
    if (rank == 0) {
        MPI_Recv(&data, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&data, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
        return;
    }
    MPI_Irecv(&data, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
    for (i = 0; i < 2000; i++) {
        compute(2e-6);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Send(&data, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void crowd(int rank, int computes)
{
    int size, data = 0, flag = 0, steps = 0;
    MPI_Request request;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        usleep(500000);
        for (int other = 1; other < size; other++)
            MPI_Send(&data, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
        return;
    }
    MPI_Irecv(&data, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
    while (!flag) {
        for (int tests = 0; !flag && tests < 200; tests++)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        if (!flag && computes) {
            struct timespec now, end;
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
            end.tv_nsec += 400000;
            do
                clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
            while ((now.tv_sec - end.tv_sec) * 1000000000L + now.tv_nsec < end.tv_nsec);
            steps++;
        }
    }
    if (computes)
        printf("%d %f\n", rank, steps * 0.0004);
}

int main(int argc, char **argv)
{
    int rank, data = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "steps")) {
            steps(rank);
            continue;
        }
        if (!strncmp(argv[i], "crowd", 5)) {
            crowd(rank, !strcmp(argv[i], "crowd-computes"));
            continue;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            usleep(800000);
            MPI_Send(&data, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
            MPI_Recv(&data, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            work(0.1);
            clock_t begin = clock();
            await(argv[i]);
            printf("%f\n", (double)(clock() - begin) / CLOCKS_PER_SEC);
            work(0.1);
            MPI_Send(&data, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
