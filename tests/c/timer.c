/* An independent profiler: the time of each MPI function that does more than tell something, by PMPI's way of interposition. Preloaded
 * in front of the recorder or behind it. A call within a call (MPICH's Fortran calls C) belongs to the outer one. All arguments are
 * passed on as words.
 * Writes to the directory in the environment variable TIMES (a macro), <rank>.txt, after MPI_Finalize:
 *     <function> <calls> <nanoseconds>
 *     run 0 <nanoseconds from the return of MPI_Init to the call of MPI_Finalize>
 *     gaps 0 <nanoseconds between two polls in a row, where they are less than 10000>
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTIONS(X) \
    X(Send, send) X(Bsend, bsend) X(Ssend, ssend) X(Rsend, rsend) X(Isend, isend) X(Ibsend, ibsend) X(Issend, issend) \
    X(Irsend, irsend) X(Recv, recv) X(Irecv, irecv) X(Sendrecv, sendrecv) X(Sendrecv_replace, sendrecv_replace) \
    X(Probe, probe) X(Iprobe, iprobe) X(Mprobe, mprobe) X(Improbe, improbe) X(Mrecv, mrecv) X(Imrecv, imrecv) X(Wait, wait) \
    X(Waitall, waitall) X(Waitany, waitany) X(Waitsome, waitsome) X(Test, test) X(Testall, testall) X(Testany, testany) \
    X(Testsome, testsome) X(Request_get_status, request_get_status) X(Request_free, request_free) X(Cancel, cancel) \
    X(Send_init, send_init) X(Recv_init, recv_init) X(Start, start) X(Startall, startall) X(Barrier, barrier) X(Bcast, bcast) \
    X(Reduce, reduce) X(Allreduce, allreduce) X(Gather, gather) X(Gatherv, gatherv) X(Scatter, scatter) X(Scatterv, scatterv) \
    X(Allgather, allgather) X(Allgatherv, allgatherv) X(Alltoall, alltoall) X(Alltoallv, alltoallv) X(Alltoallw, alltoallw) \
    X(Reduce_scatter, reduce_scatter) X(Reduce_scatter_block, reduce_scatter_block) X(Scan, scan) X(Exscan, exscan) \
    X(Ibarrier, ibarrier) X(Ibcast, ibcast) X(Ireduce, ireduce) X(Iallreduce, iallreduce) X(Iallgather, iallgather) \
    X(Ialltoall, ialltoall) X(Ialltoallv, ialltoallv) X(Comm_dup, comm_dup) X(Comm_idup, comm_idup) X(Comm_split, comm_split) \
    X(Comm_split_type, comm_split_type) X(Comm_create, comm_create) X(Comm_create_group, comm_create_group) \
    X(Comm_free, comm_free) X(Cart_create, cart_create) X(Cart_sub, cart_sub) X(Graph_create, graph_create) \
    X(Dist_graph_create_adjacent, dist_graph_create_adjacent) X(Intercomm_create, intercomm_create) \
    X(Intercomm_merge, intercomm_merge) X(Win_create, win_create) X(Win_allocate, win_allocate) X(Win_free, win_free) \
    X(Win_fence, win_fence) X(Win_lock, win_lock) X(Win_unlock, win_unlock) X(Put, put) X(Get, get) X(Accumulate, accumulate) \
    X(File_open, file_open) X(File_close, file_close) X(File_write_at, file_write_at) X(File_write_at_all, file_write_at_all) \
    X(File_read_at, file_read_at) X(File_read_at_all, file_read_at_all) X(File_set_view, file_set_view) \
    X(Op_create, op_create) X(Op_free, op_free) X(Pack, pack) X(Unpack, unpack) X(Type_contiguous, type_contiguous) \
    X(Type_vector, type_vector) X(Type_indexed, type_indexed) X(Type_create_struct, type_create_struct) \
    X(Type_create_subarray, type_create_subarray) X(Type_create_resized, type_create_resized) \
    X(Type_match_size, type_match_size) X(Type_commit, type_commit) X(Type_free, type_free)

#define NUMBER(name, fortran) N_##name,
enum { FUNCTIONS(NUMBER) ALL };
#define TEXT(name, fortran) "MPI_" #name,
static const char *names[] = { FUNCTIONS(TEXT) };
static long calls[ALL], took[ALL], begun, gaps;
static __thread long polled; /* when the thread's last call returned, if that was a poll */
static __thread int inside;

typedef long word;
typedef word function(word, word, word, word, word, word, word, word, word, word, word, word);
#define WORDS word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l
#define PASSED a, b, c, d, e, f, g, h, i, j, k, l

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

static word timed(int number, function *next, WORDS)
{
    long begin = now(), end;
    int is_poll = !strncmp(names[number], "MPI_Test", 8) || strstr(names[number], "probe") || strstr(names[number], "get_status");
    inside++;
    word result = next(PASSED);
    inside--;
    end = now();
    if (inside || !begun) return result;
    calls[number]++, took[number] += end - begin;
    if (is_poll && polled && begin - polled < 10000) gaps += begin - polled;
    polled = is_poll ? end : 0;
    return result;
}

#define WRAP(name, symbol) \
    word symbol(WORDS) \
    { \
        static function *next; \
        if (!next) next = (function *)dlsym(RTLD_NEXT, #symbol); \
        return timed(N_##name, next, PASSED); \
    }
#define WRAPPER(name, fortran) WRAP(name, MPI_##name) WRAP(name, mpi_##fortran##_)
FUNCTIONS(WRAPPER)

int MPI_Init(int *argc, char ***argv)
{
    int result = ((int (*)(int *, char ***))dlsym(RTLD_NEXT, "MPI_Init"))(argc, argv);
    begun = now();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = ((int (*)(int *, char ***, int, int *))dlsym(RTLD_NEXT, "MPI_Init_thread"))(argc, argv, required, provided);
    begun = now();
    return result;
}

static void write_times(long run)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.txt", getenv(TIMES), rank ? rank : getenv("PMI_RANK"));
    FILE *out = fopen(path, "w");
    for (int number = 0; number < ALL; number++)
        if (calls[number]) fprintf(out, "%s %ld %ld\n", names[number], calls[number], took[number]);
    fprintf(out, "run 0 %ld\ngaps 0 %ld\n", run, gaps);
    fclose(out);
}

int MPI_Finalize(void)
{
    long run = now() - begun;
    int result = ((int (*)(void))dlsym(RTLD_NEXT, "MPI_Finalize"))();
    write_times(run);
    return result;
}

void mpi_init_(int *error)
{
    ((void (*)(int *))dlsym(RTLD_NEXT, "mpi_init_"))(error);
    begun = now();
}

void mpi_init_thread_(int *required, int *provided, int *error)
{
    ((void (*)(int *, int *, int *))dlsym(RTLD_NEXT, "mpi_init_thread_"))(required, provided, error);
    begun = now();
}

void mpi_finalize_(int *error)
{
    long run = now() - begun;
    ((void (*)(int *))dlsym(RTLD_NEXT, "mpi_finalize_"))(error);
    write_times(run);
}
