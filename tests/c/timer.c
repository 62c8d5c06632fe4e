/* An independent profiler: the time of each MPI function, by PMPI's way of interposition. Preloaded in front of the recorder or behind
 * it. A call within a call (MPICH's Fortran calls C) belongs to the outer one. All arguments are passed on as words.
 * Writes to the directory in the environment variable TIMES (a macro), <rank>.txt, after MPI_Finalize:
 *     <function> <calls> <nanoseconds>
 *     run <0> <nanoseconds from the return of MPI_Init to the call of MPI_Finalize>
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FUNCTIONS(X) \
    X(Send) X(Bsend) X(Ssend) X(Rsend) X(Isend) X(Ibsend) X(Issend) X(Irsend) X(Recv) X(Irecv) X(Sendrecv) X(Sendrecv_replace) \
    X(Probe) X(Iprobe) X(Mprobe) X(Improbe) X(Mrecv) X(Imrecv) X(Wait) X(Waitall) X(Waitany) X(Waitsome) \
    X(Test) X(Testall) X(Testany) X(Testsome) X(Request_get_status) X(Request_free) X(Cancel) \
    X(Send_init) X(Recv_init) X(Start) X(Startall) \
    X(Barrier) X(Bcast) X(Reduce) X(Allreduce) X(Gather) X(Gatherv) X(Scatter) X(Scatterv) X(Allgather) X(Allgatherv) \
    X(Alltoall) X(Alltoallv) X(Alltoallw) X(Reduce_scatter) X(Reduce_scatter_block) X(Scan) X(Exscan) \
    X(Ibarrier) X(Ibcast) X(Ireduce) X(Iallreduce) X(Iallgather) X(Ialltoall) X(Ialltoallv) \
    X(Comm_dup) X(Comm_idup) X(Comm_split) X(Comm_split_type) X(Comm_create) X(Comm_create_group) X(Comm_free) \
    X(Cart_create) X(Cart_sub) X(Graph_create) X(Dist_graph_create_adjacent) X(Intercomm_create) X(Intercomm_merge) \
    X(Win_create) X(Win_allocate) X(Win_free) X(Win_fence) X(Win_lock) X(Win_unlock) X(Put) X(Get) X(Accumulate) \
    X(File_open) X(File_close) X(File_write_at) X(File_write_at_all) X(File_read_at) X(File_read_at_all) X(File_set_view)

#define NUMBER(name) N_##name,
enum { FUNCTIONS(NUMBER) ALL };
#define TEXT(name) "MPI_" #name,
static const char *names[] = { FUNCTIONS(TEXT) };
static long calls[ALL], took[ALL], begun;
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
    long begin = now();
    inside++;
    word result = next(PASSED);
    inside--;
    if (!inside) calls[number]++, took[number] += now() - begin;
    return result;
}

#define WRAPPER(name) \
    word MPI_##name(WORDS) \
    { \
        static function *next; \
        if (!next) next = (function *)dlsym(RTLD_NEXT, "MPI_" #name); \
        return timed(N_##name, next, PASSED); \
    }
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

int MPI_Finalize(void)
{
    long run = now() - begun;
    int result = ((int (*)(void))dlsym(RTLD_NEXT, "MPI_Finalize"))();
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.txt", getenv(TIMES), rank ? rank : getenv("PMI_RANK"));
    FILE *out = fopen(path, "w");
    for (int number = 0; number < ALL; number++)
        if (calls[number]) fprintf(out, "%s %ld %ld\n", names[number], calls[number], took[number]);
    fprintf(out, "run 0 %ld\n", run);
    fclose(out);
    return result;
}
