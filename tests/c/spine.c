/* A program whose communication is the same in every run, on any number of ranks from 2 on: each kind of
 * point-to-point call, each blocking collective, communicators made in every way. Its traces under two MPIs differ
 * in times only. Checks what it receives and exits non-zero when that is wrong, so that a recorder that disturbs
 * the program is caught. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void check(int good, const char *what)
{
    if (good) return;
    fprintf(stderr, "rank %d: wrong %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void point_to_point(MPI_Comm comm)
{
    int me, n, i;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    if (n < 2) return;
    int right = (me + 1) % n, left = (me + n - 1) % n;
    double out[64], in[64];
    MPI_Status status;
    MPI_Request requests[4];
    for (i = 0; i < 64; i++) out[i] = me + i;

    /* blocking sends of each mode, even ranks first */
    int (*modes[])(const void *, int, MPI_Datatype, int, int, MPI_Comm) = { MPI_Send, MPI_Ssend };
    for (i = 0; i < 2; i++) {
        if (me == 0) {
            modes[i](out, 8 + i, MPI_DOUBLE, 1, 10 + i, comm);
        } else if (me == 1) {
            MPI_Recv(in, 64, MPI_DOUBLE, 0, 10 + i, comm, &status);
            int got;
            MPI_Get_count(&status, MPI_DOUBLE, &got);
            check(got == 8 + i && status.MPI_SOURCE == 0 && status.MPI_TAG == 10 + i, "status");
        }
    }
    char *buffer = malloc(4096 + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(buffer, 4096 + MPI_BSEND_OVERHEAD);
    MPI_Bsend(out, 4, MPI_DOUBLE, right, 12, comm);
    MPI_Recv(in, 4, MPI_DOUBLE, left, 12, comm, MPI_STATUS_IGNORE);
    int dummy;
    MPI_Buffer_detach(&buffer, &dummy);
    free(buffer);

    /* ready send: the receive is posted and acknowledged first */
    MPI_Irecv(in, 4, MPI_DOUBLE, left, 13, comm, &requests[0]);
    MPI_Sendrecv(NULL, 0, MPI_INT, left, 14, NULL, 0, MPI_INT, right, 14, comm, MPI_STATUS_IGNORE);
    MPI_Rsend(out, 4, MPI_DOUBLE, right, 13, comm);
    MPI_Wait(&requests[0], &status);
    check(status.MPI_SOURCE == left && in[3] == left + 3, "ready send");

    /* non-blocking, waited for together, statuses ignored */
    MPI_Irecv(in, 16, MPI_DOUBLE, left, 20, comm, &requests[0]);
    MPI_Irecv(in + 16, 16, MPI_DOUBLE, right, 21, comm, &requests[1]);
    MPI_Isend(out, 16, MPI_DOUBLE, right, 20, comm, &requests[2]);
    MPI_Issend(out + 16, 16, MPI_DOUBLE, left, 21, comm, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    check(in[15] == left + 15 && in[31] == right + 31, "waitall");

    /* same tag, several outstanding: the order decides */
    MPI_Irecv(in, 1, MPI_DOUBLE, left, 30, comm, &requests[0]);
    MPI_Irecv(in + 1, 2, MPI_DOUBLE, left, 30, comm, &requests[1]);
    MPI_Send(out, 1, MPI_DOUBLE, right, 30, comm);
    MPI_Send(out, 2, MPI_DOUBLE, right, 30, comm);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], &status);

    /* wildcards with one possible partner */
    MPI_Irecv(in, 64, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]);
    MPI_Send(out, 5, MPI_DOUBLE, right, 40, comm);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    MPI_Send(out, 6, MPI_DOUBLE, right, 41, comm);
    MPI_Recv(in, 64, MPI_DOUBLE, MPI_ANY_SOURCE, 41, comm, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);

    /* probe, then receive what was found */
    MPI_Isend(out, 7, MPI_DOUBLE, right, 50, comm, &requests[0]);
    MPI_Probe(MPI_ANY_SOURCE, 50, comm, &status);
    MPI_Recv(in, 7, MPI_DOUBLE, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    int found = 0;
    MPI_Isend(out, 3, MPI_DOUBLE, right, 51, comm, &requests[0]);
    while (!found) MPI_Iprobe(left, 51, comm, &found, MPI_STATUS_IGNORE);
    MPI_Recv(in, 3, MPI_DOUBLE, left, 51, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

    /* tests until it is there; a request freed while active */
    int flag = 0;
    MPI_Irecv(in, 9, MPI_DOUBLE, left, 60, comm, &requests[0]);
    MPI_Isend(out, 9, MPI_DOUBLE, right, 60, comm, &requests[1]);
    MPI_Request_free(&requests[1]);
    while (!flag) MPI_Test(&requests[0], &flag, &status);
    check(status.MPI_SOURCE == left, "test");

    /* both at once, in place, to nobody, to oneself, nothing */
    MPI_Sendrecv(out, 11, MPI_DOUBLE, right, 70, in, 11, MPI_DOUBLE, left, 70, comm, &status);
    MPI_Sendrecv_replace(in, 11, MPI_DOUBLE, right, 71, left, 71, comm, MPI_STATUS_IGNORE);
    MPI_Send(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, comm);
    MPI_Recv(in, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, comm, &status);
    MPI_Irecv(in, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, comm, &requests[0]);
    MPI_Isend(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Irecv(in, 2, MPI_DOUBLE, me, 80, comm, &requests[0]);
    MPI_Send(out, 2, MPI_DOUBLE, me, 80, comm);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Sendrecv(NULL, 0, MPI_INT, right, 81, NULL, 0, MPI_INT, left, 81, comm, MPI_STATUS_IGNORE);

    /* cancelled before anybody sends */
    MPI_Irecv(in, 2, MPI_DOUBLE, left, 99, comm, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &flag);
    check(flag, "cancel");
}

static void derived_types(MPI_Comm comm)
{
    int me, n;
    double grid[8][8], column[8];
    MPI_Datatype strided;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    if (n < 2) return;
    memset(grid, 0, sizeof grid);
    MPI_Type_vector(8, 1, 8, MPI_DOUBLE, &strided);
    MPI_Type_commit(&strided);
    MPI_Sendrecv(grid, 1, strided, (me + 1) % n, 90, column, 8, MPI_DOUBLE, (me + n - 1) % n, 90, comm, MPI_STATUS_IGNORE);
    MPI_Bcast(grid, 1, strided, n - 1, comm);
    MPI_Type_free(&strided);
}

static void collectives(MPI_Comm comm)
{
    int me, n, i;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    int root = n - 1, *counts = malloc(n * sizeof(int)), *places = malloc(n * sizeof(int)), total = 0;
    double *small = calloc(n * n + n + 8, sizeof(double)), *large = calloc(n * n + n + 8, sizeof(double));
    for (i = 0; i < n; i++) {
        counts[i] = i + 1;
        places[i] = total;
        total += i + 1;
    }
    MPI_Barrier(comm);
    MPI_Bcast(small, 3, MPI_DOUBLE, root, comm);
    MPI_Reduce(small, large, 2, MPI_DOUBLE, MPI_SUM, root, comm);
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    check(sum == n, "allreduce");
    MPI_Allreduce(MPI_IN_PLACE, small, 4, MPI_DOUBLE, MPI_MAX, comm);
    MPI_Gather(small, 2, MPI_DOUBLE, large, 2, MPI_DOUBLE, root, comm);
    MPI_Gather(me == 0 ? MPI_IN_PLACE : small, 1, MPI_DOUBLE, large, 1, MPI_DOUBLE, 0, comm);
    MPI_Scatter(large, 2, MPI_DOUBLE, small, 2, MPI_DOUBLE, root, comm);
    MPI_Allgather(small, 1, MPI_DOUBLE, large, 1, MPI_DOUBLE, comm);
    MPI_Alltoall(small, 1, MPI_DOUBLE, large, 1, MPI_DOUBLE, comm);
    MPI_Alltoall(MPI_IN_PLACE, 1, MPI_DOUBLE, large, 1, MPI_DOUBLE, comm);
    MPI_Gatherv(small, me + 1, MPI_DOUBLE, large, counts, places, MPI_DOUBLE, root, comm);
    MPI_Scatterv(large, counts, places, MPI_DOUBLE, small, me + 1, MPI_DOUBLE, root, comm);
    MPI_Allgatherv(small, me + 1, MPI_DOUBLE, large, counts, places, MPI_DOUBLE, comm);
    int *same = malloc(n * sizeof(int)), *rows = malloc(n * sizeof(int));
    for (i = 0; i < n; i++) {
        same[i] = me + 1;
        rows[i] = i * (me + 1);
    }
    MPI_Alltoallv(small, counts, places, MPI_DOUBLE, large, same, rows, MPI_DOUBLE, comm);
    MPI_Datatype *types = malloc(n * sizeof *types);
    for (i = 0; i < n; i++) {
        types[i] = MPI_DOUBLE;
        places[i] *= sizeof(double);
        rows[i] *= sizeof(double);
    }
    MPI_Alltoallw(small, counts, places, types, large, same, rows, types, comm);
    MPI_Reduce_scatter(small, large, counts, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Reduce_scatter_block(small, large, 2, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Scan(small, large, 2, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Exscan(small, large, 2, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Bcast(NULL, 0, MPI_DOUBLE, 0, comm);
    free(counts); free(places); free(small); free(large); free(same); free(rows); free(types);
}

static void communicators(void)
{
    MPI_Comm dup, odd, none, shared, group_comm, created, cart, row, graph, ring, between;
    MPI_Group all, half;
    int i, *ranks = malloc(size * sizeof(int));

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    point_to_point(dup);
    MPI_Comm_split(dup, rank % 2, -rank, &odd); /* reversed order */
    collectives(odd);
    point_to_point(odd);
    MPI_Comm_split(dup, rank == 0 ? MPI_UNDEFINED : 0, rank, &none);
    if (none != MPI_COMM_NULL) {
        MPI_Barrier(none);
        MPI_Comm_free(&none);
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &shared);
    MPI_Barrier(shared);

    for (i = 0; i < (size + 1) / 2; i++) ranks[i] = 2 * i;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, (size + 1) / 2, ranks, &half);
    MPI_Comm_create(MPI_COMM_WORLD, half, &created);
    if (created != MPI_COMM_NULL) {
        collectives(created);
        MPI_Comm_free(&created);
    }
    if (rank % 2 == 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, half, 5, &group_comm);
        point_to_point(group_comm);
        MPI_Comm_free(&group_comm);
    }
    MPI_Group_free(&half);
    MPI_Group_free(&all);

    int dims[2] = { 0, 0 }, periods[2] = { 1, 1 }, keep[2] = { 0, 1 };
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
    MPI_Cart_sub(cart, keep, &row);
    point_to_point(cart);
    MPI_Allreduce(MPI_IN_PLACE, ranks, 1, MPI_INT, MPI_SUM, row);
    MPI_Comm_free(&row);

    int *index = malloc(size * sizeof(int)), *edges = malloc(2 * size * sizeof(int));
    for (i = 0; i < size; i++) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + size - 1) % size;
        edges[2 * i + 1] = (i + 1) % size;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph);
    MPI_Barrier(graph);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    MPI_Bcast(ranks, 1, MPI_INT, 0, ring);

    /* handles are reused after this: the recorder must not mistake a new communicator for an old one */
    MPI_Comm_free(&graph);
    MPI_Comm_free(&ring);
    for (i = 0; i < 5; i++) {
        MPI_Comm again;
        MPI_Comm_split(MPI_COMM_WORLD, rank < 1 + i % size, rank, &again);
        MPI_Allreduce(MPI_IN_PLACE, ranks, 1, MPI_INT, MPI_SUM, again);
        MPI_Comm_free(&again);
    }

    /* Between two halves. Collectives there are messages, which differ among MPIs: groups.c has them. */
    MPI_Comm mine;
    MPI_Comm_split(MPI_COMM_WORLD, rank >= size / 2, rank, &mine);
    MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, 77, &between);
    MPI_Comm_free(&between);
    MPI_Comm_free(&mine);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&shared);
    MPI_Comm_free(&odd);
    MPI_Comm_free(&dup);
    free(ranks); free(index); free(edges);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    for (int i = 0; i < rounds; i++) {
        point_to_point(MPI_COMM_WORLD);
        derived_types(MPI_COMM_WORLD);
        collectives(MPI_COMM_WORLD);
        collectives(MPI_COMM_SELF);
    }
    communicators();
    MPI_Finalize();
    if (rank == 0) puts("done");
    return 0;
}
