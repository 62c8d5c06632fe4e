/* Legal MPI that recorders trip over, each in a mode of its own. Checks what it receives, so that a recorder that disturbs it is
 * noticed, and prints what MPI answers, so that a run with the recorder can be compared with one without. */
#define _GNU_SOURCE
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static int rank, size, left, right;
#define CHECK(x) do { if (!(x)) { fprintf(stderr, "rank %d line %d: %s\n", rank, __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 9); } } while (0)

/* One message around the ring. */
static void ring(int tag)
{
    int out = 100 * rank + tag, in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, right, tag, &in, 1, MPI_INT, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in == 100 * left + tag);
}

/* An array that ends where memory ends. */
static int *at_the_edge(int count)
{
    size_t page = sysconf(_SC_PAGESIZE), bytes = (count * sizeof(int) + page - 1) / page * page;
    char *room = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(room + bytes, page, PROT_NONE);
    return (int *)(room + bytes) - count;
}

static MPI_Comm inner;
static MPI_Datatype inner_type;

static int free_inner(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    MPI_Type_free(&inner_type);
    return MPI_Comm_free(&inner);
}

/* Communicators and datatypes that are freed in an attribute's delete callback, and whose handles come again. */
static void callbacks(void)
{
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_inner, &key, NULL);
    for (int round = 0; round < 4; round++) {
        int neighbours = round == 0 ? 5000 : 1 + round, at = 0;
        int *who = malloc(neighbours * sizeof(int));
        for (int i = 0; i < neighbours; i++) who[i] = rank;
        MPI_Comm outer;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, neighbours, who, MPI_UNWEIGHTED, neighbours, who, MPI_UNWEIGHTED,
                                       MPI_INFO_NULL, 0, &inner);
        MPI_Type_contiguous(1 + round, MPI_INT, &inner_type);
        MPI_Type_commit(&inner_type);
        int *counts = at_the_edge(neighbours), *places = at_the_edge(neighbours);
        for (int i = 0; i < neighbours; i++) counts[i] = 1, places[i] = at++;
        int *out = calloc(neighbours * (1 + round), sizeof(int)), *in = calloc(neighbours * (1 + round), sizeof(int));
        MPI_Neighbor_alltoallv(out, counts, places, inner_type, in, counts, places, inner_type, inner);
        MPI_Bcast(out, 1, inner_type, 0, inner);
        MPI_Comm_dup(MPI_COMM_WORLD, &outer);
        MPI_Comm_set_attr(outer, key, NULL);
        MPI_Comm_free(&outer);
        CHECK(inner == MPI_COMM_NULL);
    }
    ring(1);
}

static jmp_buf back;

static void jump(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(back, 1);
}

/* An error handler that leaves by longjmp: what comes after is recorded. */
static void jumps(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    static volatile int times;
    for (times = 0; times < 3; times++) {
        int one = 1;
        if (setjmp(back) == 0) {
            MPI_Send(&one, 1, MPI_INT, size + 5, 1, MPI_COMM_WORLD);
            CHECK(!"the handler returned");
        }
        ring(times);
    }
}

/* Children of which some are not recorded: their broadcast is their own. */
static void spawn(const char *program)
{
    MPI_Comm children;
    char *plain_args[] = { "-u", "LD_PRELOAD", (char *)program, "child", NULL }, *args[] = { "child", NULL };
    char *commands[] = { "/usr/bin/env", (char *)program }, **argv[] = { plain_args, args };
    int at_most[] = { 1, 1 };
    MPI_Info infos[] = { MPI_INFO_NULL, MPI_INFO_NULL };
    MPI_Comm_spawn_multiple(2, commands, argv, at_most, infos, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    int got = 0;
    if (rank == 0) MPI_Recv(&got, 1, MPI_INT, 1, 3, children, MPI_STATUS_IGNORE);
    if (rank == 0) printf("a child got %d\n", got);
    ring(1);
    MPI_Comm_disconnect(&children);
}

static void child(void)
{
    MPI_Comm parent;
    int number = rank == 0 ? 42 : 0;
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Comm_get_parent(&parent);
    if (rank == 1) MPI_Send(&number, 1, MPI_INT, 0, 3, parent);
    MPI_Comm_disconnect(&parent);
}

static int send_at_last(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    ring(2);
    return MPI_SUCCESS;
}

/* A callback of MPI_Finalize sends. */
static void at_finalize(void)
{
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, send_at_last, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    ring(1);
}

/* Waits that fail after some of their requests are complete. */
static void failing(void)
{
    int in[8], out[8] = { 0 }, done, where[4], flag;
    MPI_Request q[4];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int kind = 0; kind < 3; kind++) {
        MPI_Irecv(in, 1, MPI_INT, left, 7, MPI_COMM_WORLD, q);
        MPI_Irecv(in + 1, 1, MPI_INT, left, 8, MPI_COMM_WORLD, q + 1);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Isend(out, 4, MPI_INT, right, 7, MPI_COMM_WORLD, q + 2); /* does not fit */
        MPI_Isend(out, 1, MPI_INT, right, 8, MPI_COMM_WORLD, q + 3);
        MPI_Barrier(MPI_COMM_WORLD);
        if (kind == 0) MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
        if (kind == 1) MPI_Waitsome(4, q, &done, where, MPI_STATUSES_IGNORE);
        if (kind == 2) MPI_Testall(4, q, &flag, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 4; i++)
            if (q[i] != MPI_REQUEST_NULL) MPI_Wait(q + i, MPI_STATUS_IGNORE);
    }
    MPI_Recv_init(in, 1, MPI_INT, left, 9, MPI_COMM_WORLD, q);
    MPI_Send_init(out, 2, MPI_INT, right, 9, MPI_COMM_WORLD, q + 1);
    for (int round = 0; round < 3; round++) {
        MPI_Startall(2, q);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 2; i++) MPI_Wait(q + i, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(q);
    MPI_Request_free(q + 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    ring(1);
}

/* A matched receive whose message does not fit, and more after it. */
static void matched(void)
{
    int in[8], out[8] = { 0 };
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < 4; round++) {
        MPI_Request q;
        MPI_Message message;
        MPI_Isend(out, 4 - round, MPI_INT, right, round, MPI_COMM_WORLD, &q);
        MPI_Mprobe(MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(in, 2, MPI_INT, &message, MPI_STATUS_IGNORE);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
    ring(5);
}

/* Receives that are posted and cancelled, and freed or left, as ABySS does. */
static void cancelled(void)
{
    int in[4];
    for (int round = 0; round < 4; round++) {
        MPI_Request q;
        MPI_Irecv(in, 4, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &q);
        ring(round);
        MPI_Cancel(&q);
        if (round % 2 == 0) MPI_Request_free(&q);
    }
}

/* Persistent receives of messages that do not fit, completed in each way. Open MPI frees them when they fail. */
static void truncating(void)
{
    int in[1], out[3] = { 0 }, index, flag = 0, done = 0, where[1], code = 0;
    MPI_Request q, send;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int way = 0; way < 7; way++) {
        MPI_Recv_init(in, 1, MPI_INT, way % 2 ? MPI_ANY_SOURCE : left, 9, MPI_COMM_WORLD, &q);
        for (int round = 0; round < 3 && q != MPI_REQUEST_NULL; round++) {
            MPI_Start(&q);
            MPI_Isend(out, round == 1 ? 1 : 3, MPI_INT, right, 9, MPI_COMM_WORLD, &send);
            switch (way) {
            case 0: MPI_Wait(&q, MPI_STATUS_IGNORE); break;
            case 1: do code = MPI_Test(&q, &flag, MPI_STATUS_IGNORE); while (!flag && !code); break;
            case 2: MPI_Waitany(1, &q, &index, MPI_STATUS_IGNORE); break;
            case 3: MPI_Waitsome(1, &q, &done, where, MPI_STATUSES_IGNORE); break;
            case 4: MPI_Waitall(1, &q, MPI_STATUSES_IGNORE); break;
            case 5: do code = MPI_Testall(1, &q, &flag, MPI_STATUSES_IGNORE); while (!flag && !code); break;
            case 6: do code = MPI_Testsome(1, &q, &done, where, MPI_STATUSES_IGNORE); while (!done && !code); break;
            }
            MPI_Wait(&send, MPI_STATUS_IGNORE);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (q != MPI_REQUEST_NULL) MPI_Request_free(&q);
    }
}

/* Collectives whose lengths differ: some ranks are told that a message is too long. Open MPI does not come back from them. */
static void lengths(void)
{
    int some[8] = { 0 }, all[64], class, code;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Bcast(some, rank ? 1 : 2, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    CHECK(class == (rank ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    code = MPI_Gather(some, rank ? 2 : 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    CHECK(class == (rank ? MPI_SUCCESS : MPI_ERR_TRUNCATE));
    code = MPI_Bcast(some, -1, MPI_INT, 0, MPI_COMM_WORLD); /* does not begin */
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_COUNT);
    ring(1);
}

/* Requests that are over when they are made, and persistent ones whose handle may change. */
static void at_once(void)
{
    int in[4096], out[4096] = { 0 }, zeros[64] = { 0 };
    MPI_Datatype types[64];
    MPI_Request q[2];
    char *room = malloc(1 << 20);
    for (int i = 0; i < 64; i++) types[i] = MPI_INT;
    for (int round = 0; round < 3; round++) {
        MPI_Iallreduce(out, in, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD, q);
        MPI_Ialltoallw(out, zeros, zeros, types, in, zeros, zeros, types, MPI_COMM_WORLD, q + 1);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    }
    MPI_Buffer_attach(room, 1 << 20);
    MPI_Bsend_init(out, 2048, MPI_INT, right, 6, MPI_COMM_WORLD, q);
    for (int round = 0; round < 3; round++) {
        MPI_Start(q);
        MPI_Recv(in, 2048, MPI_INT, left, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(q, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(q);
    int bytes;
    MPI_Buffer_detach(&room, &bytes);
}

/* Fetching calls that give nothing. */
static void fetching(void)
{
    double shared[8] = { 0 }, got[8];
    MPI_Win window;
    MPI_Win_create(shared, sizeof shared, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, got, 8, MPI_DOUBLE, right, 0, 8, MPI_DOUBLE, MPI_NO_OP, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    ring(1);
}

/* Operations that no trace can represent and that make requests, before and among such as one can. */
static void neighbours(void)
{
    int sources[2] = { left, right }, out = rank, in[2], message, sent = rank;
    MPI_Comm graph, copy;
    MPI_Request q[3];
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, sources, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    for (int round = 0; round < 4; round++) {
        MPI_Ineighbor_allgather(&out, 1, MPI_INT, in, 1, MPI_INT, graph, q);
        MPI_Irecv(&message, 1, MPI_INT, left, 1, MPI_COMM_WORLD, q + 1);
        MPI_Isend(&sent, 1, MPI_INT, right, 1, MPI_COMM_WORLD, q + 2);
        MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
        CHECK(in[0] == left && in[1] == right && message == left);
    }
    MPI_Comm_idup(graph, &copy, q);
    MPI_Isend(&sent, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, q + 1);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&graph);
    ring(2);
}

static ucontext_t scheduler, fiber;

static void in_fiber(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A call from a coroutine, at the very top of a stack, behind which memory ends. */
static void stacks(void)
{
    size_t page = sysconf(_SC_PAGESIZE), bytes = 256 * page;
    char *room = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(room + bytes, page, PROT_NONE);
    for (int round = 0; round < 2; round++) {
        getcontext(&fiber);
        fiber.uc_stack.ss_sp = room;
        fiber.uc_stack.ss_size = bytes;
        fiber.uc_link = &scheduler;
        makecontext(&fiber, in_fiber, 0);
        swapcontext(&scheduler, &fiber);
    }
    ring(4);
}

/* Requests that nobody completes. */
static void never(void)
{
    static int out, in;
    MPI_Request q;
    MPI_Isend(&out, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &q);
    MPI_Recv(&in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(&in, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &q);
    ring(3);
}

#if MPI_VERSION >= 4
/* Persistent collectives that each rank starts in another order: they match by the order in which they were made. */
static void any_order(void)
{
    int one[4] = { rank == 0 }, two[4] = { rank }, sum[4];
    MPI_Request q[3];
    MPI_Bcast_init(one, 4, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, q);
    MPI_Allreduce_init(two, sum, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, q + 1);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, q + 2);
    for (int round = 0; round < 12; round++) {
        int first = (rank + round) % 3, way = round % 2 ? 1 : 2;
        for (int i = 0; i < 3; i++) MPI_Start(q + (first + way * i) % 3);
        MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
        CHECK(one[0] == 1 && sum[0] == 3);
    }
    for (int i = 0; i < 3; i++) MPI_Request_free(q + i);
    ring(1);
}

/* A session that began before MPI_Init ends, and the program goes on. */
static MPI_Session session;

static void exchanges(void)
{
    int in, out = rank, a[2] = { rank, rank };
    for (int round = 0; round < 3; round++) {
        MPI_Request q[2];
        MPI_Isendrecv(&out, 1, MPI_INT, right, 4, &in, 1, MPI_INT, left, 4, MPI_COMM_WORLD, q);
        MPI_Isendrecv_replace(a, 2, MPI_INT, right, 5, left, 5, MPI_COMM_WORLD, q + 1);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        CHECK(in == left);
    }
}
#define PERSISTENT MPI_Allreduce_init
#define INFO , MPI_INFO_NULL
#elif OMPI_MAJOR_VERSION >= 5
#define PERSISTENT MPI_Allreduce_init
#define INFO , MPI_INFO_NULL
#else
#include <mpi-ext.h>
#define PERSISTENT MPIX_Allreduce_init
#define INFO , MPI_INFO_NULL
#endif

static void persistent(void)
{
    int out = 1, in;
    MPI_Request q;
    PERSISTENT(&out, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD INFO, &q);
    for (int round = 0; round < 3; round++) {
        MPI_Start(&q);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        CHECK(in == size);
    }
    MPI_Request_free(&q);
}

static int late;

/* After main, as static objects' destructors run: FEniCS ends MPI there. */
__attribute__((destructor)) static void last(void)
{
    if (!late) return;
    ring(8);
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    const char *mode = argv[1];
    int provided;
    late = !strcmp(mode, "late");
#if MPI_VERSION >= 4
    if (!strcmp(mode, "session")) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
#endif
    MPI_Init_thread(&argc, &argv, late ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    if (!strcmp(mode, "callbacks")) callbacks();
    if (!strcmp(mode, "jumps")) jumps();
    if (!strcmp(mode, "spawn")) spawn(argv[0]);
    if (!strcmp(mode, "child")) child();
    if (!strcmp(mode, "finalize")) at_finalize();
    if (!strcmp(mode, "failing")) failing();
    if (!strcmp(mode, "truncating")) truncating();
    if (!strcmp(mode, "lengths")) lengths();
    if (!strcmp(mode, "matched")) matched();
    if (!strcmp(mode, "cancelled")) cancelled();
    if (!strcmp(mode, "at_once")) at_once();
    if (!strcmp(mode, "fetching")) fetching();
    if (!strcmp(mode, "neighbours")) neighbours();
    if (!strcmp(mode, "stacks")) stacks();
    if (!strcmp(mode, "never")) never();
    if (!strcmp(mode, "persistent")) persistent();
#if MPI_VERSION >= 4
    if (!strcmp(mode, "any_order")) any_order();
    if (!strcmp(mode, "exchanges")) exchanges();
    if (!strcmp(mode, "session")) MPI_Session_finalize(&session), ring(1);
#endif
    if (late) {
        ring(7);
        return 0;
    }
    MPI_Finalize();
    if (rank == 0 && strcmp(mode, "child")) puts("fine");
    return 0;
}
