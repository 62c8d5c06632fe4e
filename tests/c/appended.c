/* `appended FILE`, with 2 ranks: rank 0 writes 1500 bytes. All open the file again to append; each writes 300 bytes by its own pointer and 400 by the
 * shared one, and rank 0 reads 100 bytes behind its own. */
#include <mpi.h>
#include <stdlib.h>

static char data[1500];

static void check(int fine)
{
    if (!fine) MPI_Abort(MPI_COMM_WORLD, 9);
}

int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Offset at;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        check(!MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
        MPI_File_write(file, data, sizeof data, MPI_CHAR, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    check(!MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_APPEND | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_File_get_position(file, &at);
    check(at == sizeof data);
    MPI_File_write(file, data, 300, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_write_shared(file, data, 400, MPI_CHAR, MPI_STATUS_IGNORE);
    if (rank == 0) MPI_File_read(file, data, 100, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
