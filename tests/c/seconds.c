/* Programs whose seconds are known: all work is sleep.
 *
 *     seconds recv|probe|iprobe|mprobe|improbe|threads   rank 0 sends ten tasks to each other rank, which sleeps 5 ms for each
 *     seconds dup|used|idup|split|split_type|create|create_group|cart|graph|dist_graph|inter|merge|window|file|resize|seek_shared|write_all|
 *             write_fails                      ten times: rank 0 sleeps 20 ms, all create (used: and use what they created; inter: between two halves;
 *                                              file: open; the last four: agree on an open file; write_fails: rank 1 cannot write)
 *     seconds late_recv|late_wait                ten times: rank 0 sends 8 MB to rank 1, which sleeps 20 ms before it waits for them
 *     seconds late_ssend                         the same with one byte and MPI_Ssend
 *     seconds sends|isends|puts                  ten times: rank 1 computes 20 ms before it receives 8 MB of rank 0, which waits for
 *                                                its own sends, or for what it puts
 *     seconds skew                               rank 3 is launched a second later than the others; then ten broadcasts
 *     seconds phases                             rank 0 sleeps 300 ms; MPI_Pcontrol(3), a stencil, MPI_Pcontrol(-3)
 *     seconds received                           five times in MPI_Pcontrol(3): rank 0 sleeps 6 ms and sends; rank 1 receives and sleeps 4 ms; behind
 *                                                it a barrier
 *     seconds marked_target|marked_threads       ten times rank 1 sleeps 12 ms in a phase (MPI_Pcontrol(6)), then longer, and prints for how many
 *                                                nanoseconds it was in it; meanwhile rank 0 gets from its window, or another thread of
 *                                                rank 1 sends
 *     seconds stencil                            rank 3 computes 3 ms a step, the others 1 ms;
 *                                                each rank prints how many nanoseconds it slept
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static int rank, size;
static const char *mode;

static long long slept;

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void work(double milliseconds)
{
    struct timespec time = { 0, (long)(milliseconds * 1e6) };
    slept -= now();
    nanosleep(&time, NULL);
    slept += now();
}

static int is(const char *name) { return !strcmp(mode, name); }

static void *find(void *status)
{
    MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, status);
    return NULL;
}

/* Rank 0 takes a result from any rank. */
static int take(void)
{
    MPI_Status status;
    MPI_Message message;
    int result, found = 0, from = MPI_ANY_SOURCE;
    if (is("probe")) MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status), from = status.MPI_SOURCE;
    if (is("iprobe")) {
        while (!found) MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &found, &status);
        from = status.MPI_SOURCE;
    }
    if (is("threads")) {
        /* One thread finds the message, another one receives it. */
        pthread_t thread;
        pthread_create(&thread, NULL, find, &status);
        pthread_join(thread, NULL);
        from = status.MPI_SOURCE;
    }
    if (is("mprobe") || is("improbe")) {
        if (is("mprobe")) MPI_Mprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &message, &status);
        else while (!found) MPI_Improbe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &found, &message, &status);
        MPI_Mrecv(&result, 1, MPI_INT, &message, &status);
    } else {
        MPI_Recv(&result, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &status);
    }
    return status.MPI_SOURCE;
}

static void master_and_workers(void)
{
    int task, left = 10 * (size - 1), none = -1, worker, i;
    if (rank == 0) {
        for (worker = 1; worker < size; worker++) MPI_Send(&left, 1, MPI_INT, worker, 0, MPI_COMM_WORLD);
        for (i = size - 1; i < left; i++) {
            worker = take();
            MPI_Send(&i, 1, MPI_INT, worker, 0, MPI_COMM_WORLD);
        }
        for (i = 1; i < size; i++) {
            worker = take();
            MPI_Send(&none, 1, MPI_INT, worker, 0, MPI_COMM_WORLD);
        }
        return;
    }
    for (;;) {
        MPI_Recv(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (task < 0) return;
        work(5);
        MPI_Send(&task, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
}

/* Rank 0 sleeps again before all close what they have opened. */
static void open_and_close(void)
{
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "seconds.tmp", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (rank == 0) work(20);
    MPI_File_close(&file);
}

static MPI_File shared = MPI_FILE_NULL;

/* Rank 1 cannot write meanwhile. */
static void limit(rlim_t most)
{
    struct rlimit limit;
    if (!is("write_fails") || rank != 1) return;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = most;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void agree_on_file(void)
{
    int failed = 0;
    if (shared == MPI_FILE_NULL)
        MPI_File_open(MPI_COMM_WORLD, "seconds.tmp", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &shared);
    if (is("resize")) MPI_File_set_size(shared, 4096);
    if (is("seek_shared")) MPI_File_seek_shared(shared, 0, MPI_SEEK_SET);
    limit(0);
    if (strstr(mode, "write")) failed = MPI_File_write_at_all(shared, 4 * rank, &rank, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    limit(RLIM_INFINITY);
    if (failed) printf("failed\n");
}

/* Between the first and the second half of the ranks, which merge them again. */
static void create_between_groups(MPI_Comm *made)
{
    static MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm between;
    int is_upper = rank >= size / 2;
    if (half == MPI_COMM_NULL) MPI_Comm_split(MPI_COMM_WORLD, is_upper, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_upper ? 0 : size / 2, 8, made);
    if (is("inter")) return;
    between = *made;
    MPI_Intercomm_merge(between, is_upper, made);
    MPI_Comm_free(&between);
}

static void create(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request;
    MPI_Group group;
    int periodic = 1, index[64], edges[64], i = 0;
    if (is("dup") || is("used")) MPI_Comm_dup(MPI_COMM_WORLD, &made);
    if (is("used")) {
        MPI_Bcast(&i, 1, MPI_INT, 0, made);
        MPI_Barrier(made);
    }
    if (is("idup")) {
        MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    /* The last rank gets none. */
    if (is("split")) MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? MPI_UNDEFINED : rank % 2, rank, &made);
    if (is("split_type")) MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
    if (is("create") || is("create_group")) {
        MPI_Comm_group(MPI_COMM_WORLD, &group);
        if (is("create")) MPI_Comm_create(MPI_COMM_WORLD, group, &made);
        else MPI_Comm_create_group(MPI_COMM_WORLD, group, 7, &made);
        MPI_Group_free(&group);
    }
    if (is("cart")) MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &made);
    if (is("file")) open_and_close();
    if (is("resize") || is("seek_shared") || strstr(mode, "write")) agree_on_file();
    if (is("graph")) {
        for (i = 0; i < size; i++) index[i] = i + 1, edges[i] = (i + 1) % size;
        MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &made);
    }
    if (is("dist_graph")) {
        i = (rank + 1) % size;
        edges[0] = (rank + size - 1) % size;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, edges, MPI_UNWEIGHTED, 1, &i, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
    }
    if (is("inter") || is("merge")) create_between_groups(&made);
    if (is("window")) {
        MPI_Win window;
        MPI_Win_create(&i, sizeof i, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_free(&window);
    }
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
}

/* Rank 0 sends 8 MB, or a byte synchronously, ten times to rank 1, which sleeps 20 ms before it receives, or between MPI_Irecv and MPI_Wait. */
static void receive_late(void)
{
    static char data[8 << 20];
    MPI_Request request = MPI_REQUEST_NULL;
    for (int step = 0; step < 10; step++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0 && is("late_ssend")) MPI_Ssend(data, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        else if (rank == 0) MPI_Send(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        if (rank != 1) continue;
        if (is("late_wait")) MPI_Irecv(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
        work(20);
        if (is("late_wait")) MPI_Wait(&request, MPI_STATUS_IGNORE);
        else MPI_Recv(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Ten times rank 0 sends 1 MB to rank 1, which sleeps 20 ms before it receives them, and answers. Rank 0 waits for some of both requests
   until both are complete. */
static void wait_for_some(void)
{
    static char data[1 << 20];
    char answer = 0;
    for (int step = 0; step < 10; step++) {
        if (rank == 0) {
            MPI_Request requests[2];
            MPI_Status statuses[2];
            int places[2], complete = 0;
            MPI_Irecv(&answer, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[1]);
            for (int some; complete < 2; complete += some)
                MPI_Waitsome(2, requests, &some, places, statuses);
        } else if (rank == 1) {
            work(20);
            MPI_Recv(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            work(1);
            MPI_Send(&answer, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
}

/* Ten times rank 0 sends 8 MB to rank 1, which computes 20 ms before it receives them, and rank 0 waits for its send alone: in MPI_Send, or in
   MPI_Wait behind two sends of which the first is small. */
static void wait_for_sends(void)
{
    static char data[8 << 20];
    MPI_Request requests[2];
    for (int step = 0; step < 10; step++) {
        if (rank == 0 && is("sends")) {
            MPI_Send(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        } else if (rank == 0) {
            MPI_Isend(data, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[1]);
            work(0.1);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            work(20);
            MPI_Recv(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (is("isends")) MPI_Recv(data, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

/* Ten times rank 0 puts 8 MB into the window of rank 1, which computes 20 ms before it calls MPI, and waits until its own copy is free. */
static void wait_for_puts(void)
{
    static char data[8 << 20];
    MPI_Win window;
    MPI_Win_create(data, sizeof data, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    for (int step = 0; step < 10; step++) {
        if (rank == 0) {
            MPI_Put(data, sizeof data, MPI_CHAR, 1, 0, sizeof data, MPI_CHAR, window);
            MPI_Win_flush_local(1, window);
        } else if (rank == 1) {
            work(20);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

static long long in_phase;

static void marked_work(void)
{
    long long begin = now();
    MPI_Pcontrol(6);
    work(12);
    MPI_Pcontrol(-6);
    in_phase += now() - begin;
}

/* Ten times rank 1 sleeps 12 ms in a phase, and 3 ms behind it, while rank 0 asks for data of its window. */
static void answer_in_phases(void)
{
    int own = 0, other;
    MPI_Win window;
    MPI_Win_create(&own, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (int step = 0; step < 10; step++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            marked_work();
            work(3);
        } else if (rank == 0) {
            work(4);
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
            MPI_Get(&other, sizeof other, MPI_CHAR, 1, 0, sizeof other, MPI_CHAR, window);
            MPI_Win_unlock(1, window);
        }
    }
    MPI_Win_free(&window);
}

/* Rank 1 waits for rank 0 at the end of a phase. */
static void receive_in_phases(void)
{
    int data = 0;
    for (int step = 0; step < 5; step++) {
        if (rank < 2) MPI_Pcontrol(3);
        if (rank == 0) {
            work(6);
            MPI_Send(&data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Recv(&data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            work(4);
        }
        if (rank < 2) MPI_Pcontrol(-3);
        if (step % 2) MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* The other thread sends when the first one is in the phase, and long after that. */
static void *send_twice(void *unused)
{
    for (int i = 0; i < 2; i++) {
        work(i == 0 ? 5 : 15);
        MPI_Send(NULL, 0, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
    return unused;
}

/* Ten times the first thread of rank 1 sleeps 12 ms in a phase, and makes no call until the other thread has ended. */
static void phases_beside_a_thread(void)
{
    pthread_t thread;
    for (int step = 0; step < 10; step++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            for (int i = 0; i < 2; i++) MPI_Recv(NULL, 0, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            work(2);
            pthread_create(&thread, NULL, send_twice, NULL);
            marked_work();
            pthread_join(thread, NULL);
        }
    }
}

/* The rank as the launcher tells it, before MPI_Init. */
static int launched(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank) rank = getenv("PMI_RANK");
    return rank ? atoi(rank) : -1;
}

int main(int argc, char **argv)
{
    int provided, step, halo = 0, other;
    mode = argc > 1 ? argv[1] : "";
    if (is("skew") && launched() == 3) work(1000 - 1e-6);
    MPI_Init_thread(&argc, &argv, strstr(mode, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (is("recv") || strstr(mode, "probe") || is("threads")) {
        master_and_workers();
    } else if (strstr(mode, "late")) {
        receive_late();
    } else if (strstr(mode, "sends")) {
        wait_for_sends();
    } else if (is("puts")) {
        wait_for_puts();
    } else if (strstr(mode, "marked")) {
        is("marked_target") ? answer_in_phases() : phases_beside_a_thread();
        if (rank == 1) printf("%lld\n", in_phase);
    } else if (is("received")) {
        receive_in_phases();
    } else if (is("some")) {
        wait_for_some();
    } else if (is("skew")) {
        for (step = 0; step < 10; step++) MPI_Bcast(&halo, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } else if (is("stencil") || is("phases")) {
        if (is("phases")) {
            if (rank == 0) work(300);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Pcontrol(3);
        }
        for (step = 0; step < 40; step++) {
            work(rank == 3 ? 3 : 1);
            MPI_Sendrecv(&halo, 1, MPI_INT, (rank + 1) % size, 0, &other, 1, MPI_INT, (rank + size - 1) % size, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (is("phases")) MPI_Pcontrol(-3);
        printf("%lld\n", slept);
    } else {
        for (step = 0; step < 10; step++) {
            if (rank == 0) work(20);
            create();
        }
        if (shared != MPI_FILE_NULL) MPI_File_close(&shared);
    }
    MPI_Finalize();
    return 0;
}
