/* Worlds that meet: two ranks spawn two (and, from these and all of the first, one more), exchange messages with them, merge, and meet again by a
 * port. Each prints the messages and bytes that it
 * sends. With an argument, each of the two only spawns two more. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static long messages, bytes;

static void send(int count, int to, int tag, MPI_Comm comm)
{
    char data[4096] = { 0 };
    MPI_Send(data, count, MPI_CHAR, to, tag, comm);
    messages++, bytes += count;
}

static int receive(int from, int tag, MPI_Comm comm)
{
    char data[4096];
    int count;
    MPI_Status status;
    MPI_Recv(data, sizeof data, MPI_CHAR, from, tag, comm, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    return count;
}

/* Everybody sends to the next rank. */
static void ring(MPI_Comm comm, int count)
{
    int rank, size;
    char out[4096] = { 0 }, in[4096];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Request requests[2];
    MPI_Irecv(in, sizeof in, MPI_CHAR, MPI_ANY_SOURCE, 9, comm, &requests[0]);
    MPI_Isend(out, count, MPI_CHAR, (rank + 1) % size, 9, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    messages++, bytes += count;
}

/* The same on both sides of an inter-communicator with as many ranks on each, and then together. `first`: whose ranks come first. */
static void together(MPI_Comm others, int first)
{
    int rank, number = first;
    MPI_Comm all, half, twin;
    MPI_Comm_rank(others, &rank);
    send(100 + rank, rank, 1, others);
    receive(rank, 1, others);
    MPI_Intercomm_merge(others, !first, &all);
    MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_SUM, all);
    ring(all, 1000);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_split(all, rank % 2, -rank, &half);
    ring(half, 200);
    MPI_Comm_dup(others, &twin);
    MPI_Comm_rank(twin, &rank);
    send(7, rank, 2, twin);
    receive(MPI_ANY_SOURCE, 2, twin);
    MPI_Bcast(&number, 1, MPI_INT, first ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, twin);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&half);
    MPI_Comm_free(&all);
}

/* Each process spawns two, of which the first sends back as much as it gets. All do it at the same time. */
static void spawn_alone(char *program)
{
    char *arguments[] = { "alone", NULL };
    MPI_Comm children;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
    send(30 + rank, 0, 8, children);
    receive(0, 8, children);
    MPI_Comm_disconnect(&children);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, children, again;
    char port[MPI_MAX_PORT_NAME] = "";
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL && argc > 1) {
        spawn_alone(argv[0]);
    } else if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        together(children, 1);
        /* A third world, of the first two. */
        MPI_Comm all, third;
        char *lonely[] = { "third", NULL };
        MPI_Intercomm_merge(children, 0, &all);
        MPI_Comm_spawn(argv[0], lonely, 1, MPI_INFO_NULL, 2, all, &third, MPI_ERRCODES_IGNORE);
        send(50, 0, 3, third);
        receive(0, 4, third);
        MPI_Comm_disconnect(&third);
        /* Meets the second world again. */
        if (rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 5, children);
            messages++, bytes += MPI_MAX_PORT_NAME;
        }
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(&children);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &again);
        if (rank == 0) MPI_Close_port(port);
        together(again, 1);
        MPI_Comm_disconnect(&again);
        spawn_alone(argv[0]);
    } else if (argc > 1 && !strcmp(argv[1], "alone")) {
        ring(MPI_COMM_WORLD, 300);
        if (rank == 0) send(receive(0, 8, parent), 0, 8, parent);
        MPI_Comm_disconnect(&parent);
    } else if (argc > 1) {
        for (int from = 0; from < 4; from++) receive(from, 3, parent);
        for (int to = 0; to < 4; to++) send(60, to, 4, parent);
        MPI_Comm_disconnect(&parent);
    } else {
        together(parent, 0);
        MPI_Comm all, third;
        char *lonely[] = { "third", NULL };
        MPI_Intercomm_merge(parent, 1, &all);
        MPI_Comm_spawn(argv[0], lonely, 1, MPI_INFO_NULL, 2, all, &third, MPI_ERRCODES_IGNORE);
        send(50, 0, 3, third);
        receive(0, 4, third);
        MPI_Comm_disconnect(&third);
        if (rank == 0) MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 5, parent, MPI_STATUS_IGNORE);
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(&parent);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &again);
        together(again, 0);
        MPI_Comm_disconnect(&again);
    }
    printf("sent %ld %ld\n", messages, bytes);
    MPI_Finalize();
    return 0;
}
