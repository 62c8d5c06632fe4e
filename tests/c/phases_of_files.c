/* Collective accesses that interleave: each rank has every n-th block of a file, or the ranks' blocks are in reverse order. Prints the bytes of
 * each access of all ranks: what, bytes.
 *     phases_of_files DIRECTORY
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK 4096
#define BLOCKS 64
#define BYTES (BLOCK * BLOCKS)

static char data[BYTES];

int main(int argc, char **argv)
{
    int rank, size;
    char path[4096];
    MPI_File file;
    MPI_Datatype every;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(path, sizeof path, "%s/interleaved", argv[1]);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file)) abort();

    MPI_Type_vector(BLOCKS, BLOCK, size * BLOCK, MPI_BYTE, &every);
    MPI_Type_commit(&every);
    MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, every, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);

    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    /* The shared pointer is none of the ranks' own. */
    MPI_File_write_shared(file, data, 0, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_seek(file, (MPI_Offset)(size - 1 - rank) * BYTES, MPI_SEEK_SET);
    MPI_File_write_all(file, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    /* In order, each where the one before ends: each rank on its own. */
    MPI_File_seek(file, (MPI_Offset)(2 * rank - size) * BYTES, MPI_SEEK_CUR);
    MPI_File_write_all(file, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&every);
    if (rank == 0) printf("written %ld\nread %ld\n", 3L * size * BYTES, 1L * size * BYTES);
    MPI_Finalize();
    return 0;
}
