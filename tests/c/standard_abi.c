/* Functions of MPI 4.1 and 5.0: a buffer of a communicator, flushed by a request; the status of all requests; the fields of a status. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    enum { ROOM = 100000 };
    int rank, size, major, minor, all = 0, tag, out, in = -1, room;
    char *buffer = malloc(ROOM), *detached;
    MPI_Request requests[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL }, flush;
    MPI_Status statuses[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Abi_get_version(&major, &minor);
    MPI_Comm_attach_buffer(MPI_COMM_WORLD, buffer, ROOM);
    out = rank;
    MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 3, MPI_COMM_WORLD, requests);
    MPI_Bsend(&out, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD);
    MPI_Comm_iflush_buffer(MPI_COMM_WORLD, &flush);
    MPI_Wait(&flush, MPI_STATUS_IGNORE);
    while (!all) MPI_Request_get_status_all(2, requests, &all, statuses);
    MPI_Status_get_tag(statuses, &tag);
    MPI_Waitall(2, requests, statuses);
    MPI_Comm_detach_buffer(MPI_COMM_WORLD, &detached, &room);
    if (in != (rank + size - 1) % size || tag != 3 || detached != buffer || room != ROOM) return 9;
    if (rank == 0) printf("ABI %d\n", major);
    MPI_Finalize();
    return 0;
}
