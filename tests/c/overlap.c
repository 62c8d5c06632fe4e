/* A preload library whose MPI_Iallreduce takes 5 ms, as VEF_TEST_OVERLAP says: `start`, before it returns; `wait`, from its start on, while the
 * program may compute. At its end each process says how many waits came when all was over. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS 5e-3

static double end;
static int waits, late;

static void pass(double until) { while (PMPI_Wtime() < until); }

int MPI_Iallreduce(const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request) {
    int code = PMPI_Allreduce(from, into, count, type, op, comm);
    const char *where = getenv("VEF_TEST_OVERLAP");
    end = PMPI_Wtime() + SECONDS;
    if (where && !strcmp(where, "start")) pass(end);
    *request = MPI_REQUEST_NULL;
    return code;
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status) {
    (void)status;
    waits++;
    late += PMPI_Wtime() >= end;
    pass(end);
    return PMPI_Waitall(1, request, MPI_STATUSES_IGNORE);
}

__attribute__((destructor)) static void tell(void) {
    if (waits) fprintf(stderr, "late %d of %d\n", late, waits);
}
