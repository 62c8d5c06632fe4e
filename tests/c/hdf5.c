/* Datasets of an HDF5 file that all ranks write and read: by rows and by columns, together and each on its own, and in chunks.
 *     hdf5 FILE
 */
#include <hdf5.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 96 };

static int rank, size;

static void dataset(hid_t file, const char *name, int by_column, H5FD_mpio_xfer_t together, int in_chunks)
{
    static double data[ROWS * COLUMNS], got[ROWS * COLUMNS];
    hsize_t all[2] = { ROWS, COLUMNS }, chunk[2] = { 16, 24 };
    hsize_t first[2] = { by_column ? 0 : rank * ROWS / size, by_column ? rank * COLUMNS / size : 0 };
    hsize_t own[2] = { by_column ? ROWS : ROWS / size, by_column ? COLUMNS / size : COLUMNS };
    for (int i = 0; i < ROWS * COLUMNS; i++) data[i] = rank + 1;
    hid_t space = H5Screate_simple(2, all, NULL), memory = H5Screate_simple(2, own, NULL);
    hid_t layout = H5Pcreate(H5P_DATASET_CREATE), transfer = H5Pcreate(H5P_DATASET_XFER);
    if (in_chunks) H5Pset_chunk(layout, 2, chunk);
    H5Pset_dxpl_mpio(transfer, together);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, own, NULL);
    hid_t set = H5Dcreate(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    if (H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, data) < 0) abort();
    if (H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, transfer, got) < 0) abort();
    for (hsize_t i = 0; i < own[0] * own[1]; i++)
        if (got[i] != rank + 1) abort();
    H5Dclose(set), H5Pclose(layout), H5Pclose(transfer), H5Sclose(space), H5Sclose(memory);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file < 0) abort();
    dataset(file, "rows", 0, H5FD_MPIO_COLLECTIVE, 0);
    dataset(file, "columns", 1, H5FD_MPIO_COLLECTIVE, 0);
    dataset(file, "alone", 1, H5FD_MPIO_INDEPENDENT, 0);
    dataset(file, "chunks", 1, H5FD_MPIO_COLLECTIVE, 1);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    H5Fclose(file), H5Pclose(access);
    MPI_Finalize();
    return 0;
}
