/* Collectives around the end of a communicator: in a delete callback of it, on one that reuses its handle with other members, and after one rank
 * has failed to free one. Ends with an error if a result is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int in_callback;

static int deleted(MPI_Comm comm, int keyval, void *value, void *extra) {
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    in_callback += sum;
    return MPI_SUCCESS;
}

static void expect(const char *what, int found, int expected) {
    if (found != expected) {
        fprintf(stderr, "%s: %d instead of %d\n", what, found, expected);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

int main(int argc, char **argv) {
    int rank, size, keyval;
    MPI_Comm whole, half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &whole);
    MPI_Comm_set_attr(whole, keyval, &keyval);
    MPI_Barrier(whole);
    MPI_Comm_free(&whole);
    expect("callback", in_callback, size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    int first = rank % 2 == (size - 1) % 2 ? size - 1 : size - 2;
    int value = rank == first ? 1000 + rank : -1;
    MPI_Bcast(&value, 1, MPI_INT, 0, half);
    expect("bcast", value, 1000 + first);
    MPI_Comm_free(&half);

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (rank == 0) {
        MPI_Comm world = MPI_COMM_WORLD;
        expect("free of the world succeeds", MPI_Comm_free(&world) == MPI_SUCCESS, 0);
    }
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect("sum", sum, size * (size - 1) / 2);
    MPI_Finalize();
    return 0;
}
