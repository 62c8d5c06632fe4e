/* The calls that have a count, once with C `int`s and once, where the MPI has it, as their `_c` forms: included twice by
 * every_call.c with CALL(Send) as MPI_Send or MPI_Send_c, and the types of counts and displacements to match. */

static void SECTION(point_to_point)(void)
{
    double a[8] = { rank }, b[8];
    int flag, index, done, indices[4];
    MPI_Status status, statuses[4];
    MPI_Request q[4];
    MPI_Message message;
    count_t n = 5;

    /* Send, Bsend and Ssend meet a receive that is posted; so does Rsend, which needs it */
    MPI_Irecv(b, 8, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, q);
    CALL(Send)(a, n, MPI_DOUBLE, right, 1, MPI_COMM_WORLD);
    MPI_Wait(q, &status);
    MPI_Irecv(b, 8, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, q);
    CALL(Bsend)(a, n, MPI_DOUBLE, right, 2, MPI_COMM_WORLD);
    MPI_Wait(q, MPI_STATUS_IGNORE);
    MPI_Irecv(b, 8, MPI_DOUBLE, left, 3, MPI_COMM_WORLD, q);
    CALL(Ssend)(a, n, MPI_DOUBLE, right, 3, MPI_COMM_WORLD);
    MPI_Wait(q, MPI_STATUS_IGNORE);
    CALL(Irecv)(b, 8, MPI_DOUBLE, left, 4, MPI_COMM_WORLD, q);
    MPI_Barrier(MPI_COMM_WORLD);
    CALL(Rsend)(a, n, MPI_DOUBLE, right, 4, MPI_COMM_WORLD);
    MPI_Wait(q, MPI_STATUS_IGNORE);

    CALL(Isend)(a, n, MPI_DOUBLE, right, 5, MPI_COMM_WORLD, q);
    CALL(Recv)(b, 8, MPI_DOUBLE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    do MPI_Test(q, &flag, MPI_STATUS_IGNORE); while (!flag);
    CALL(Ibsend)(a, n, MPI_DOUBLE, right, 6, MPI_COMM_WORLD, q);
    MPI_Probe(left, 6, MPI_COMM_WORLD, &status);
    MPI_Recv(b, 8, MPI_DOUBLE, left, 6, MPI_COMM_WORLD, &status);
    MPI_Waitany(1, q, &index, &status);
    CALL(Issend)(a, n, MPI_DOUBLE, right, 7, MPI_COMM_WORLD, q);
    do MPI_Iprobe(left, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE); while (!flag);
    MPI_Recv(b, 8, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, &status);
    MPI_Waitsome(1, q, &done, indices, statuses);
    MPI_Irecv(b, 8, MPI_DOUBLE, left, 8, MPI_COMM_WORLD, q);
    MPI_Barrier(MPI_COMM_WORLD);
    CALL(Irsend)(a, n, MPI_DOUBLE, right, 8, MPI_COMM_WORLD, q + 1);
    do MPI_Testall(2, q, &flag, statuses); while (!flag);

    MPI_Isend(a, 4, MPI_DOUBLE, right, 9, MPI_COMM_WORLD, q);
    MPI_Mprobe(left, 9, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    CALL(Mrecv)(b, 8, MPI_DOUBLE, &message, &status);
    do MPI_Testany(1, q, &index, &flag, &status); while (!flag);
    MPI_Isend(a, 4, MPI_DOUBLE, right, 10, MPI_COMM_WORLD, q);
    do MPI_Improbe(MPI_ANY_SOURCE, 10, MPI_COMM_WORLD, &flag, &message, &status); while (!flag);
    CALL(Imrecv)(b, 8, MPI_DOUBLE, &message, q + 1);
    do MPI_Testsome(2, q, &done, indices, MPI_STATUSES_IGNORE); while (done != MPI_UNDEFINED);

    CALL(Sendrecv)(a, n, MPI_DOUBLE, right, 11, b, 8, MPI_DOUBLE, left, 11, MPI_COMM_WORLD, &status);
    CALL(Sendrecv_replace)(a, n, MPI_DOUBLE, right, 12, left, 12, MPI_COMM_WORLD, &status);
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
    CALL(Isendrecv)(a, n, MPI_DOUBLE, right, 13, b, 8, MPI_DOUBLE, left, 13, MPI_COMM_WORLD, q);
    MPI_Wait(q, &status);
    CALL(Isendrecv_replace)(a, n, MPI_DOUBLE, right, 14, left, 14, MPI_COMM_WORLD, q);
    MPI_Wait(q, &status);
#endif

    CALL(Recv_init)(b, 8, MPI_DOUBLE, left, 15, MPI_COMM_WORLD, q);
    CALL(Send_init)(a, n, MPI_DOUBLE, right, 15, MPI_COMM_WORLD, q + 1);
    MPI_Startall(2, q);
    MPI_Waitall(2, q, statuses);
    MPI_Request_free(q + 1);
    CALL(Bsend_init)(a, n, MPI_DOUBLE, right, 15, MPI_COMM_WORLD, q + 1);
    MPI_Start(q);
    MPI_Start(q + 1);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    MPI_Request_free(q + 1);
    CALL(Ssend_init)(a, n, MPI_DOUBLE, right, 15, MPI_COMM_WORLD, q + 1);
    MPI_Startall(2, q);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    MPI_Request_free(q + 1);
    CALL(Rsend_init)(a, n, MPI_DOUBLE, right, 15, MPI_COMM_WORLD, q + 1);
    MPI_Start(q);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(q + 1);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    MPI_Request_free(q);
    MPI_Request_free(q + 1);
}

#define EACH(i) for (int i = 0; i < size; i++)
#define DONE MPI_Wait(&q, MPI_STATUS_IGNORE);
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
/* `call` makes a persistent request, which runs twice */
#define PERSISTENT(call) { call; MPI_Start(&q); DONE MPI_Start(&q); DONE MPI_Request_free(&q); }
#else
#define PERSISTENT(call)
#endif
/* the operation as it blocks, does not, and is persistent */
#define THREE(plain, immediate, persistent, ...) \
    CALL(plain)(__VA_ARGS__, MPI_COMM_WORLD); \
    CALL(immediate)(__VA_ARGS__, MPI_COMM_WORLD, &q); DONE \
    PERSISTENT(CALL(persistent)(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &q))

static void SECTION(collectives)(void)
{
    MPI_Request q;
    int *s = calloc(4 * size, sizeof(int)), *d = calloc(4 * size, sizeof(int));
    count_t *n = calloc(size, sizeof *n);
    displ_t *at = calloc(size, sizeof *at), *bytes_at = calloc(size, sizeof *bytes_at);
    MPI_Datatype *types = calloc(size, sizeof *types);
    EACH(i) n[i] = i + 1, at[i] = 2 * i, bytes_at[i] = 8 * i, types[i] = MPI_INT;
    count_t mine = rank + 1;

    THREE(Bcast, Ibcast, Bcast_init, d, 3, MPI_INT, 0)
    THREE(Reduce, Ireduce, Reduce_init, s, d, 3, MPI_INT, MPI_SUM, 0)
    THREE(Allreduce, Iallreduce, Allreduce_init, s, d, 3, MPI_INT, MPI_SUM)
    THREE(Gather, Igather, Gather_init, s, 2, MPI_INT, d, 2, MPI_INT, 0)
    THREE(Gatherv, Igatherv, Gatherv_init, s, mine, MPI_INT, d, n, at, MPI_INT, 0)
    THREE(Scatter, Iscatter, Scatter_init, s, 2, MPI_INT, d, 2, MPI_INT, 0)
    THREE(Scatterv, Iscatterv, Scatterv_init, s, n, at, MPI_INT, d, mine, MPI_INT, 0)
    THREE(Allgather, Iallgather, Allgather_init, s, 2, MPI_INT, d, 2, MPI_INT)
    THREE(Allgatherv, Iallgatherv, Allgatherv_init, s, mine, MPI_INT, d, n, at, MPI_INT)
    THREE(Alltoall, Ialltoall, Alltoall_init, s, 2, MPI_INT, d, 2, MPI_INT)
    EACH(i) n[i] = 2;
    THREE(Alltoallv, Ialltoallv, Alltoallv_init, s, n, at, MPI_INT, d, n, at, MPI_INT)
    {
        /* displacements in bytes: C `int`s in the plain form */
        displ_t *sa = bytes_at, *ra = bytes_at;
        THREE(Alltoallw, Ialltoallw, Alltoallw_init, s, n, sa, types, d, n, ra, types)
    }
    THREE(Reduce_scatter, Ireduce_scatter, Reduce_scatter_init, s, d, n, MPI_INT, MPI_SUM)
    THREE(Reduce_scatter_block, Ireduce_scatter_block, Reduce_scatter_block_init, s, d, 2, MPI_INT, MPI_SUM)
    THREE(Scan, Iscan, Scan_init, s, d, 3, MPI_INT, MPI_SUM)
    THREE(Exscan, Iexscan, Exscan_init, s, d, 3, MPI_INT, MPI_SUM)
    free(s); free(d); free(n); free(at); free(bytes_at); free(types);
}

static void SECTION(neighbours)(void)
{
    MPI_Comm ring;
    MPI_Request q;
    int s[8] = { rank }, d[8], sources[2] = { left, rank }, destinations[2] = { right, rank };
    count_t two[2] = { 2, 2 };
    displ_t at[2] = { 0, 2 };
    MPI_Aint bytes_at[2] = { 0, 8 };
    MPI_Datatype types[2] = { MPI_INT, MPI_INT };
    /* each to its right and to itself: two blocks of two integers, 16 bytes in every call below */
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, destinations, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
#define ON_RING(plain, immediate, persistent, ...) \
    CALL(plain)(__VA_ARGS__, ring); \
    CALL(immediate)(__VA_ARGS__, ring, &q); DONE \
    PERSISTENT(CALL(persistent)(__VA_ARGS__, ring, MPI_INFO_NULL, &q))
    ON_RING(Neighbor_allgather, Ineighbor_allgather, Neighbor_allgather_init, s, 2, MPI_INT, d, 2, MPI_INT)
    ON_RING(Neighbor_allgatherv, Ineighbor_allgatherv, Neighbor_allgatherv_init, s, 2, MPI_INT, d, two, at, MPI_INT)
    ON_RING(Neighbor_alltoall, Ineighbor_alltoall, Neighbor_alltoall_init, s, 2, MPI_INT, d, 2, MPI_INT)
    ON_RING(Neighbor_alltoallv, Ineighbor_alltoallv, Neighbor_alltoallv_init, s, two, at, MPI_INT, d, two, at, MPI_INT)
    ON_RING(Neighbor_alltoallw, Ineighbor_alltoallw, Neighbor_alltoallw_init, s, two, bytes_at, types, d, two, bytes_at,
            types)
#undef ON_RING
    MPI_Comm_free(&ring);
}

static void SECTION(one_sided)(void)
{
    int s[4] = { rank }, d[4], *base;
    MPI_Win win, shared;
    MPI_Request q[4];
    int memory[8] = { 0 };
    CALL(Win_create)(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    CALL(Put)(s, 3, MPI_INT, right, 0, 3, MPI_INT, win);
    MPI_Win_fence(0, win);
    CALL(Get)(d, 3, MPI_INT, right, 0, 3, MPI_INT, win);
    MPI_Win_fence(0, win);
    CALL(Accumulate)(s, 3, MPI_INT, right, 0, 3, MPI_INT, MPI_SUM, win);
    CALL(Get_accumulate)(s, 3, MPI_INT, d, 3, MPI_INT, right, 3, 3, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
    CALL(Rput)(s, 1, MPI_INT, right, 0, 1, MPI_INT, win, q);
    CALL(Rget)(d, 1, MPI_INT, right, 1, 1, MPI_INT, win, q + 1);
    CALL(Raccumulate)(s, 1, MPI_INT, right, 2, 1, MPI_INT, MPI_SUM, win, q + 2);
    CALL(Rget_accumulate)(s, 1, MPI_INT, d + 1, 1, MPI_INT, right, 3, 1, MPI_INT, MPI_SUM, win, q + 3);
    MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
    MPI_Win_unlock(right, win);
    MPI_Win_free(&win);
    CALL(Win_allocate)(32, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_free(&win);
    CALL(Win_allocate_shared)(32, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &shared);
    MPI_Win_free(&shared);
}

static void SECTION(files)(const char *directory)
{
    char name[4096];
    int a[4] = { rank, 1, 2, 3 }, b[4];
    MPI_File file;
    MPI_Request q;
    MPI_Status status;
    snprintf(name, sizeof name, "%s/file", directory);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_atomicity(file, 0);
    MPI_File_set_info(file, MPI_INFO_NULL);
    MPI_File_preallocate(file, 16 * size);
    MPI_File_set_size(file, 16 * size);
    MPI_File_set_view(file, 16 * rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
#define START MPI_File_seek(file, 0, MPI_SEEK_SET);
#define SHARED_START MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    CALL(File_write)(file, a, 4, MPI_INT, &status);
    START CALL(File_write_all)(file, a, 4, MPI_INT, &status);
    CALL(File_write_at)(file, 0, a, 4, MPI_INT, &status);
    CALL(File_write_at_all)(file, 0, a, 4, MPI_INT, MPI_STATUS_IGNORE);
    START CALL(File_write_all_begin)(file, a, 4, MPI_INT); MPI_File_write_all_end(file, a, &status);
    CALL(File_write_at_all_begin)(file, 0, a, 4, MPI_INT); MPI_File_write_at_all_end(file, a, &status);
    START CALL(File_iwrite)(file, a, 4, MPI_INT, &q); DONE
    START CALL(File_iwrite_all)(file, a, 4, MPI_INT, &q); DONE
    CALL(File_iwrite_at)(file, 0, a, 4, MPI_INT, &q); DONE
    CALL(File_iwrite_at_all)(file, 0, a, 4, MPI_INT, &q); DONE
    MPI_File_sync(file);
    START CALL(File_read)(file, b, 4, MPI_INT, &status);
    START CALL(File_read_all)(file, b, 4, MPI_INT, &status);
    CALL(File_read_at)(file, 0, b, 4, MPI_INT, &status);
    CALL(File_read_at_all)(file, 0, b, 4, MPI_INT, MPI_STATUS_IGNORE);
    START CALL(File_read_all_begin)(file, b, 4, MPI_INT); MPI_File_read_all_end(file, b, &status);
    CALL(File_read_at_all_begin)(file, 0, b, 4, MPI_INT); MPI_File_read_at_all_end(file, b, &status);
    START CALL(File_iread)(file, b, 4, MPI_INT, &q); DONE
    START CALL(File_iread_all)(file, b, 4, MPI_INT, &q); DONE
    CALL(File_iread_at)(file, 0, b, 4, MPI_INT, &q); DONE
    CALL(File_iread_at_all)(file, 0, b, 4, MPI_INT, &q); DONE
    if (b[0] != rank || b[3] != 3) MPI_Abort(MPI_COMM_WORLD, 8);
    /* the shared pointer wants the same view everywhere */
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    SHARED_START CALL(File_write_shared)(file, a, 4, MPI_INT, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    SHARED_START CALL(File_iwrite_shared)(file, a, 4, MPI_INT, &q); DONE
    MPI_Barrier(MPI_COMM_WORLD);
    SHARED_START CALL(File_read_shared)(file, b, 4, MPI_INT, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    SHARED_START CALL(File_iread_shared)(file, b, 4, MPI_INT, &q); DONE
    MPI_Barrier(MPI_COMM_WORLD);
    SHARED_START CALL(File_write_ordered)(file, a, 4, MPI_INT, &status);
    SHARED_START CALL(File_read_ordered)(file, b, 4, MPI_INT, &status);
    SHARED_START CALL(File_write_ordered_begin)(file, a, 4, MPI_INT); MPI_File_write_ordered_end(file, a, &status);
    SHARED_START CALL(File_read_ordered_begin)(file, b, 4, MPI_INT); MPI_File_read_ordered_end(file, b, &status);
    MPI_File_close(&file);
    if (rank == 0) MPI_File_delete(name, MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
#undef START
#undef SHARED_START
}
#undef EACH
#undef DONE
#undef PERSISTENT
#undef THREE
