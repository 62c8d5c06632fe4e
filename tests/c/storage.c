/* Reads and writes files in many ways; each rank prints its accesses: file, w or r (R: all ranks read the same bytes together), first byte, bytes, its rank.
 *     storage DIRECTORY
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK 300000

static int rank, size;
static char data[BLOCK];

static void did(const char *file, char what, long at, long bytes)
{
    printf("%s %c %ld %ld %d\n", file, what, at, bytes, rank);
}

static MPI_File opened(MPI_Comm comm, const char *directory, const char *name)
{
    char path[4096];
    MPI_File file;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file)) abort();
    return file;
}

int main(int argc, char **argv)
{
    char own[32];
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 2);

    MPI_File file = opened(MPI_COMM_WORLD, argv[1], "shared");
    MPI_File_write_at(file, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    did("shared", 'w', (long)rank * BLOCK, BLOCK);
    MPI_File_write_at_all(file, (MPI_Offset)(size + rank) * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    did("shared", 'w', (long)(size + rank) * BLOCK, BLOCK);
    MPI_File_iread_at(file, (MPI_Offset)rank * BLOCK, data, 1000, MPI_BYTE, &requests[0]);
    MPI_File_iwrite_at(file, 7, data, rank == 0 ? 70000 : 0, MPI_BYTE, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    did("shared", 'r', (long)rank * BLOCK, 1000);
    if (rank == 0) did("shared", 'w', 7, 70000);
    /* Positions behind a view, in integers. */
    MPI_File_set_view(file, 4096, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read(file, data, 500, MPI_INT, MPI_STATUS_IGNORE);
    did("shared", 'r', 4096, 2000);
    MPI_File_read_all(file, data, 20000, MPI_INT, MPI_STATUS_IGNORE);
    did("shared", 'R', 4096 + 2000, 80000);
    MPI_File_read_at(file, 10000, data, 3, MPI_INT, MPI_STATUS_IGNORE);
    did("shared", 'r', 4096 + 40000, 12);
    MPI_File_write_at_all_begin(file, 50000 + 100 * rank, data, 100, MPI_INT);
    MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE);
    did("shared", 'w', 4096 + 200000 + 400 * rank, 400);
    /* The file is on a duplicate of MPI_COMM_WORLD: its closing has no order with collectives there. */
    MPI_Request barrier;
    if (rank != 1) MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    MPI_File_close(&file);
    if (rank == 0) MPI_Send(data, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Recv(data, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    }
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);

    /* A file of each rank. */
    snprintf(own, sizeof own, "own<b>%d", rank);
    file = opened(MPI_COMM_SELF, argv[1], own);
    MPI_File_write_all(file, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    did(own, 'w', 0, BLOCK);
    MPI_File_write(file, data, 5000 * rank, MPI_BYTE, MPI_STATUS_IGNORE);
    did(own, 'w', BLOCK, 5000 * rank);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
