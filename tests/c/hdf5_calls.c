/* What HDF5 1.10 calls for datasets of a file that all ranks write and read, by rows, by columns and in chunks, together and each on its own.
 *     hdf5_calls FILE
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, WIDTH = 192, HEADER = 2048, CHUNK = 3072 };

static int rank, size;
static MPI_File file;

static void view(MPI_Offset at, MPI_Datatype type)
{
    if (MPI_File_set_view(file, at, MPI_BYTE, type, "native", MPI_INFO_NULL)) abort();
}

/* A region of the file from `at` on, of which `type` selects the own part; it is written and read, `count` elements of `memory` each time. */
static void dataset(MPI_Offset at, MPI_Datatype type, int count, MPI_Datatype memory)
{
    int bytes, agreed[2], own[2] = { 1, 1 };
    MPI_Type_commit(&type);
    if (memory == MPI_DATATYPE_NULL) memory = type;
    MPI_Type_size(type, &bytes);
    char *data = malloc(ROWS * WIDTH * size), *got = malloc(ROWS * WIDTH * size);
    memset(data, rank + 1, ROWS * WIDTH * size);
    for (int write = 1; write >= 0; write--) {
        MPI_Allreduce(own, agreed, 2, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
        view(at, type);
        if (write) MPI_File_write_at_all(file, 0, data, count, memory, MPI_STATUS_IGNORE);
        else MPI_File_read_at_all(file, 0, got, count, memory, MPI_STATUS_IGNORE);
        view(0, MPI_BYTE);
    }
    if (memory == MPI_BYTE && memcmp(data, got, bytes)) abort();
    MPI_Type_free(&type);
    free(data), free(got);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm own;
    MPI_Offset end;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    if (argc < 2 || MPI_File_open(own, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file)) abort();
    if (rank == 0 && MPI_File_get_size(file, &end)) abort();
    MPI_Bcast(&end, sizeof end, MPI_BYTE, 0, own);
    if (end != 0) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_File_set_size(file, 0);
    MPI_Barrier(own);

    const long whole = (long)ROWS * WIDTH * size;
    MPI_Datatype type;
    /* Rows: a block of the region, resized to all of it. */
    int of[1] = { (int)whole }, part[1] = { ROWS * WIDTH }, from[1] = { rank * ROWS * WIDTH };
    MPI_Type_create_subarray(1, of, part, from, MPI_ORDER_C, MPI_BYTE, &type);
    dataset(HEADER, type, ROWS * WIDTH, MPI_BYTE);
    /* Columns: a strided vector of the own ones. */
    int all[2] = { ROWS, WIDTH * size }, columns[2] = { ROWS, WIDTH }, first[2] = { 0, rank * WIDTH };
    MPI_Type_create_subarray(2, all, columns, first, MPI_ORDER_C, MPI_BYTE, &type);
    dataset(HEADER + whole, type, ROWS * WIDTH, MPI_BYTE);
    /* The same by each rank on its own, row after row. */
    char row[WIDTH] = { 0 };
    for (int write = 1; write >= 0; write--)
        for (int i = 0; i < ROWS; i++) {
            MPI_Offset at = HEADER + 2 * whole + (MPI_Offset)(i * size + rank) * WIDTH;
            if (write) MPI_File_write_at(file, at, row, WIDTH, MPI_BYTE, MPI_STATUS_IGNORE);
            else MPI_File_read_at(file, at, row, WIDTH, MPI_BYTE, MPI_STATUS_IGNORE);
        }
    /* Chunks: every size-th one is filled by the rank, as one element that has the same holes in memory. */
    MPI_Aint places[4];
    int lengths[4];
    for (int i = 0; i < 4; i++) places[i] = (MPI_Aint)(i * size + rank) * CHUNK, lengths[i] = CHUNK;
    MPI_Type_create_hindexed(4, lengths, places, MPI_BYTE, &type);
    dataset(HEADER + 3 * whole, type, 1, MPI_DATATYPE_NULL);

    /* Rank 0 keeps the header; the file gets its size, and is flushed. */
    if (rank == 0) MPI_File_write_at(file, 0, row, 96, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(own);
    MPI_File_set_size(file, HEADER + 3 * whole + 4L * CHUNK * size);
    MPI_Barrier(own);
    MPI_File_sync(file);
    MPI_Barrier(own);
    MPI_File_close(&file);
    MPI_Comm_free(&own);
    MPI_Finalize();
    return 0;
}
