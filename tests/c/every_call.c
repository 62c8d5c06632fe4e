/* Calls every function that the recorder wraps at least once. Which are missing is told by comparing the capture with the
 * names that the recorder exports, so a new wrapper without a call here fails the test.
 *
 *     every_call DIR       all but the two below; files go to DIR
 *     every_call DIR abort ends by MPI_Abort
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int rank, size, left, right;

#define CALL(name) MPI_##name
#define SECTION(name) name
typedef int plain_count;
typedef int plain_displ;
#define count_t plain_count
#define displ_t plain_displ
#include "every_call_counts.h"
#undef CALL
#undef SECTION
#undef count_t
#undef displ_t

#if MPI_VERSION >= 4
#define CALL(name) MPI_##name##_c
#define SECTION(name) large_##name
#define count_t MPI_Count
#define displ_t MPI_Aint
#include "every_call_counts.h"
#undef count_t
#undef displ_t
#endif

static void without_counts(void)
{
    MPI_Request q;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Ibarrier(MPI_COMM_WORLD, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &q);
    MPI_Start(&q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Request_free(&q);

    /* partitioned: 4 parts of 2 doubles to the right */
    double s[8] = { rank }, d[8];
    int flag, list[1] = { 3 };
    MPI_Request p[2];
    MPI_Precv_init(d, 4, 2, MPI_DOUBLE, left, 21, MPI_COMM_WORLD, MPI_INFO_NULL, p);
    MPI_Psend_init(s, 4, 2, MPI_DOUBLE, right, 21, MPI_COMM_WORLD, MPI_INFO_NULL, p + 1);
    MPI_Startall(2, p);
    MPI_Pready(0, p[1]);
    MPI_Pready_range(1, 2, p[1]);
    MPI_Pready_list(1, list, p[1]);
    do MPI_Parrived(p[0], 0, &flag); while (!flag);
    MPI_Waitall(2, p, MPI_STATUSES_IGNORE);
    MPI_Request_free(p);
    MPI_Request_free(p + 1);
#endif
    /* never received: cancelled */
    int y;
    MPI_Irecv(&y, 1, MPI_INT, left, 4711, MPI_COMM_WORLD, &q);
    int told;
    MPI_Request_get_status(q, &told, MPI_STATUS_IGNORE);
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    int which;
    MPI_Request_get_status_all(1, &q, &told, MPI_STATUSES_IGNORE);
    MPI_Request_get_status_any(1, &q, &which, &told, MPI_STATUS_IGNORE);
#endif
    MPI_Cancel(&q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_free(&pair);
    MPI_Pcontrol(1);
}

static void communicators(void)
{
    MPI_Comm a, b, cart;
    MPI_Request q;
    MPI_Group all;
    MPI_Info info = MPI_INFO_NULL;
    int dims[1] = { size }, yes[1] = { 1 }, one = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Barrier(a);
    MPI_Comm_free(&a);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &a);
    MPI_Comm_idup(a, &b, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Barrier(b);
    MPI_Comm_free(&b);
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
    MPI_Comm_idup_with_info(a, info, &b, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Comm_free(&b);
#endif
    MPI_Comm_disconnect(&a);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &a);
    MPI_Barrier(a);
    MPI_Comm_free(&a);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, info, &a);
    MPI_Comm_free(&a);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_create(MPI_COMM_WORLD, all, &a);
    MPI_Comm_free(&a);
    MPI_Comm_create_group(MPI_COMM_WORLD, all, 5, &a);
    MPI_Comm_free(&a);
    MPI_Group_free(&all);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, yes, 0, &cart);
    MPI_Cart_sub(cart, yes, &a);
    MPI_Comm_free(&a);
    MPI_Comm_free(&cart);
    int *index = malloc(size * sizeof(int)), *edges = malloc(size * sizeof(int));
    for (int i = 0; i < size; i++) index[i] = i + 1, edges[i] = (i + 1) % size;
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &a);
    MPI_Comm_free(&a);
    free(index); free(edges);
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &right, MPI_UNWEIGHTED, info, 0, &a);
    MPI_Comm_free(&a);

    /* between even and odd ranks */
    MPI_Comm half, between, merged;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 99, &between);
    int x = rank, y = -1;
    MPI_Bcast(&x, 1, MPI_INT, rank % 2 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, between);
    MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, between);
    if (rank < 2) MPI_Sendrecv(&x, 1, MPI_INT, 0, 1, &y, 1, MPI_INT, 0, 1, between, MPI_STATUS_IGNORE);
    MPI_Intercomm_merge(between, rank % 2, &merged);
    MPI_Barrier(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

static void synchronised_windows(void)
{
    MPI_Win win;
    MPI_Group all, others;
    int memory[4] = { 0 }, one = 1, two = 2, result, flag;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_free(&win);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Info hints;
    MPI_Info_create(&hints);
    MPI_Win_set_info(win, hints);
    MPI_Info_free(&hints);
    MPI_Win_lock_all(0, win);
    MPI_Fetch_and_op(&one, &result, MPI_INT, right, 0, MPI_SUM, win);
    MPI_Win_flush(right, win);
    MPI_Compare_and_swap(&two, &one, &result, MPI_INT, right, 1, win);
    MPI_Win_flush_local(right, win);
    MPI_Win_flush_all(win);
    MPI_Win_flush_local_all(win);
    MPI_Win_sync(win);
    MPI_Win_unlock_all(win);
    /* post, start, complete, wait: each to its right, so each is waited for by its left */
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int tested = 0; tested < 2; tested++) {
        MPI_Group_incl(all, 1, &left, &others);
        MPI_Win_post(others, 0, win);
        MPI_Group_free(&others);
        MPI_Group_incl(all, 1, &right, &others);
        MPI_Win_start(others, 0, win);
        MPI_Put(&one, 1, MPI_INT, right, 2, 1, MPI_INT, win);
        MPI_Win_complete(win);
        MPI_Group_free(&others);
        if (tested) do MPI_Win_test(win, &flag); while (!flag);
        else MPI_Win_wait(win);
    }
    MPI_Group_free(&all);
    MPI_Win_free(&win);
}

/* Other worlds. Not every MPI has what this needs, so errors are returned, and there is nobody to wait for. */
static void processes(char *program, const char *directory)
{
    MPI_Comm other = MPI_COMM_NULL;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    char *commands[1] = { program }, *arguments[3] = { (char *)directory, "spawned", NULL }, **all[1] = { arguments };
    int one[1] = { 1 };
    MPI_Info none[1] = { MPI_INFO_NULL };
    if (MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE) == MPI_SUCCESS)
        MPI_Comm_disconnect(&other);
    if (MPI_Comm_spawn_multiple(1, commands, all, one, none, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE) == MPI_SUCCESS)
        MPI_Comm_disconnect(&other);

    int opened = rank != 0 || MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS;
    MPI_Bcast(&opened, 1, MPI_INT, 0, MPI_COMM_WORLD);
    /* MPICH where its process manager has no ports: it may crash when given one that is none */
    if (rank == 0 && !opened) puts("not called: MPI_Comm_accept MPI_Comm_connect MPI_Close_port");
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (opened && rank < 2) {
        int failed = rank == 0 ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other)
                               : MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
        if (!failed) MPI_Comm_disconnect(&other);
    }
    if (rank == 0) {
        if (MPI_Publish_name("vef-every-call", MPI_INFO_NULL, port) == MPI_SUCCESS) {
            MPI_Lookup_name("vef-every-call", MPI_INFO_NULL, port);
            MPI_Unpublish_name("vef-every-call", MPI_INFO_NULL, port);
        } else {
            MPI_Lookup_name("vef-every-call", MPI_INFO_NULL, port);
            MPI_Unpublish_name("vef-every-call", MPI_INFO_NULL, port);
        }
        if (opened) MPI_Close_port(port);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* rank 1 calls rank 0 */
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int end = socket(AF_INET, SOCK_STREAM, 0);
    if (rank == 0) {
        bind(end, (struct sockaddr *)&address, sizeof address);
        listen(end, 1);
        getsockname(end, (struct sockaddr *)&address, &length);
    }
    MPI_Bcast(&address, sizeof address, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 1) connect(end, (struct sockaddr *)&address, sizeof address);
    if (rank == 0) end = accept(end, NULL, NULL);
    if (rank < 2 && MPI_Comm_join(end, &other) == MPI_SUCCESS && other != MPI_COMM_NULL) MPI_Comm_disconnect(&other);
    close(end);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
static void groups_of_a_session(void)
{
    MPI_Comm comm, between;
    MPI_Group all, mine, others;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_create_from_group(all, "vef/all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    int other = 1 - rank;
    if (rank < 2) {
        MPI_Group_incl(all, 1, &rank, &mine);
        MPI_Group_incl(all, 1, &other, &others);
        MPI_Intercomm_create_from_groups(mine, 0, others, 0, "vef/two", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &between);
        MPI_Comm_free(&between);
        MPI_Group_free(&mine);
        MPI_Group_free(&others);
    }
    MPI_Group_free(&all);
}
#endif

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : ".";
    int provided, flag;
    MPI_Comm parent;
    if (argc > 2) MPI_Init(&argc, &argv);
    else MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    if (argc > 2) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    size_t room = 16 * (512 + MPI_BSEND_OVERHEAD);
    void *buffer = malloc(room);
    MPI_Buffer_attach(buffer, room);
    point_to_point();
    collectives();
    neighbours();
    one_sided();
    files(directory);
#if MPI_VERSION >= 4
    large_point_to_point();
    large_collectives();
    large_neighbours();
    large_one_sided();
    large_files(directory);
#endif
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
    groups_of_a_session();
#endif
    without_counts();
    communicators();
    synchronised_windows();
    processes(argv[0], directory);
    MPI_Buffer_detach(&buffer, &flag);
    free(buffer);
    MPI_Finalize();
    MPI_Finalized(&flag);
    if (rank == 0) puts("fine");
    return flag ? 0 : 1;
}
