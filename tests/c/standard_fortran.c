/* Fortran on the standard ABI of MPI-5, where a Fortran library may lie above any MPI: handles are the integers of MPI_Comm_toint and its likes.
 * With -DLIBRARY the library, of a few functions, in the manner of MPICH's; else a program that calls these as a Fortran compiler does. */
#include <mpi.h>
#include <stdio.h>

void mpi_init_(int *ierr);
void mpi_finalize_(int *ierr);
void mpi_comm_group_(int *comm, int *group, int *ierr);
void mpi_comm_dup_(int *comm, int *made, int *ierr);
void mpi_send_(void *buf, int *count, int *type, int *dest, int *tag, int *comm, int *ierr);
void mpi_irecv_(void *buf, int *count, int *type, int *source, int *tag, int *comm, int *request, int *ierr);
void mpi_wait_(int *request, MPI_Status *status, int *ierr);
void mpi_allreduce_(void *in, void *out, int *count, int *type, int *op, int *comm, int *ierr);

#ifdef LIBRARY

void mpi_init_(int *ierr) { *ierr = MPI_Init(NULL, NULL); }
void mpi_finalize_(int *ierr) { *ierr = MPI_Finalize(); }

void mpi_comm_group_(int *comm, int *group, int *ierr)
{
    MPI_Group made;
    *ierr = MPI_Comm_group(MPI_Comm_fromint(*comm), &made);
    if (!*ierr) *group = MPI_Group_toint(made);
}

void mpi_comm_dup_(int *comm, int *made, int *ierr)
{
    MPI_Comm copy;
    *ierr = MPI_Comm_dup(MPI_Comm_fromint(*comm), &copy);
    if (!*ierr) *made = MPI_Comm_toint(copy);
}

void mpi_send_(void *buf, int *count, int *type, int *dest, int *tag, int *comm, int *ierr)
{
    *ierr = MPI_Send(buf, *count, MPI_Type_fromint(*type), *dest, *tag, MPI_Comm_fromint(*comm));
}

void mpi_irecv_(void *buf, int *count, int *type, int *source, int *tag, int *comm, int *request, int *ierr)
{
    MPI_Request made;
    *ierr = MPI_Irecv(buf, *count, MPI_Type_fromint(*type), *source, *tag, MPI_Comm_fromint(*comm), &made);
    if (!*ierr) *request = MPI_Request_toint(made);
}

void mpi_wait_(int *request, MPI_Status *status, int *ierr)
{
    MPI_Request waiting = MPI_Request_fromint(*request);
    *ierr = MPI_Wait(&waiting, status);
    *request = MPI_Request_toint(waiting);
}

void mpi_allreduce_(void *in, void *out, int *count, int *type, int *op, int *comm, int *ierr)
{
    *ierr = MPI_Allreduce(in, out, *count, MPI_Type_fromint(*type), MPI_Op_fromint(*op), MPI_Comm_fromint(*comm));
}

#else

int main(void)
{
    int world = MPI_Comm_toint(MPI_COMM_WORLD), integer = MPI_Type_toint(MPI_INT), sum = MPI_Op_toint(MPI_SUM);
    int comm, group, request, ierr, rank, size, one = 1, total = 0;
    MPI_Status status;
    mpi_init_(&ierr);
    mpi_comm_group_(&world, &group, &ierr);
    if (ierr) return 5;
    mpi_comm_dup_(&world, &comm, &ierr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int tag = 0; tag < 4; tag++) {
        int from = (rank + size - 1) % size, to = (rank + 1) % size, in = -1;
        mpi_irecv_(&in, &one, &integer, &from, &tag, &comm, &request, &ierr);
        mpi_send_(&rank, &one, &integer, &to, &tag, &comm, &ierr);
        mpi_wait_(&request, &status, &ierr);
        if (ierr || in != from) return 6;
    }
    mpi_allreduce_(&one, &total, &one, &integer, &sum, &comm, &ierr);
    if (rank == 0) printf("%d ranks\n", total);
    mpi_finalize_(&ierr);
    return ierr;
}

#endif
