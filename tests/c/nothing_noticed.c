/* A program that knows nothing of the preload library in front of its MPI, but for asking it what it takes for
 * MPI_COMM_WORLD. Built without position-independent code, so that under Open MPI it holds a copy of the object
 * behind that handle (a COPY relocation). Ends with 0 if MPI behaves. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition) \
    if (!(condition)) { fprintf(stderr, "line %d: not " #condition "\n", __LINE__); return 1; }

int main(int argc, char **argv)
{
    int rank, size, sum, flag, provided;
    char name[MPI_MAX_OBJECT_NAME];
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);

    uintptr_t (*taken)(void) = (uintptr_t (*)(void))dlsym(RTLD_DEFAULT, "passthrough_comm_world");
    CHECK(taken != NULL);
    CHECK(taken() == (uintptr_t)MPI_COMM_WORLD);

    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS);
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS);
    CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sum == size * (size - 1) / 2);

    /* Nine and twelve arguments: some of them on the stack. */
    int right = (rank + 1) % size, left = (rank + size - 1) % size, got = -1;
    MPI_Status status;
    CHECK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 3, &got, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
    CHECK(got == left && status.MPI_SOURCE == left && status.MPI_TAG == 3);
    int counts[64], places[64], to[64], from[64];
    for (int i = 0; i < size; i++) { counts[i] = 1; places[i] = i; to[i] = 10 * rank + i; }
    CHECK(MPI_Alltoallv(to, counts, places, MPI_INT, from, counts, places, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int i = 0; i < size; i++) CHECK(from[i] == 10 * i + rank);

    MPI_Request requests[2];
    MPI_Status statuses[2];
    CHECK(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Isend(&rank, 1, MPI_INT, right, 4, MPI_COMM_WORLD, &requests[1]) == MPI_SUCCESS);
    CHECK(MPI_Waitall(2, requests, statuses) == MPI_SUCCESS);
    CHECK(got == left && requests[0] == MPI_REQUEST_NULL && statuses[0].MPI_SOURCE == left);

    CHECK(MPI_Pcontrol(1, "a variadic call", 2.5) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &flag) == MPI_SUCCESS && !strcmp(name, "MPI_COMM_WORLD"));

    MPI_File file;
    MPI_Win window;
    CHECK(MPI_Win_create(&got, sizeof got, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window) == MPI_SUCCESS);
    CHECK(MPI_Win_fence(0, window) == MPI_SUCCESS);
    CHECK(MPI_Win_free(&window) == MPI_SUCCESS);
    CHECK(MPI_File_open(MPI_COMM_WORLD, "/nowhere/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS);
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    printf("rank %d: nothing noticed\n", rank);
    return 0;
}
