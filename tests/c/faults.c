/* What real programs do at the edge of the standard, each in a mode of its own. Prints what MPI answers, so that a run with
 * the recorder can be compared with one without.
 *
 *     faults edges             null requests, PROC_NULL, zero counts, MPI_IN_PLACE, empty datatypes, ignored statuses, errors
 *     faults many N            N requests under way at once
 *     faults limited N BYTES   the same, while files may have so many bytes at most
 *     faults closes N          the same, once it has closed all files that it does not know and has opened its own under their numbers
 *     faults exit              ends without MPI_Finalize
 *     faults fork              forks and executes between calls
 *     faults threads           four threads a rank exchange messages at once
 *     faults abort             rank 0 ends all by MPI_Abort
 *     faults long FILE         exchanges messages until there is such a file (or for two minutes)
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size, left, right;

static void say(const char *what, long a, long b, long c)
{
    if (rank == 0) printf("%s %ld %ld %ld\n", what, a, b, c);
}

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static void edges(void)
{
    MPI_Request q[4] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL };
    MPI_Status s, ss[4];
    int flag, index, count, indices[4], a[8] = { rank, 1, 2, 3, 4, 5, 6, 7 }, b[8] = { 0 };

    /* null requests */
    MPI_Wait(q, &s);
    say("wait null", s.MPI_SOURCE == MPI_ANY_SOURCE, s.MPI_TAG == MPI_ANY_TAG, 0);
    MPI_Test(q, &flag, MPI_STATUS_IGNORE);
    MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
    MPI_Waitall(0, NULL, NULL);
    MPI_Waitany(4, q, &index, &s);
    say("waitany null", flag, index == MPI_UNDEFINED, 0);
    MPI_Testsome(4, q, &count, indices, ss);
    MPI_Testall(4, q, &flag, ss);
    MPI_Testany(0, q, &index, &flag, &s);
    say("testsome null", count == MPI_UNDEFINED, flag, index == MPI_UNDEFINED);

    /* nobody */
    MPI_Send(a, 8, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Recv(b, 8, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &s);
    MPI_Get_count(&s, MPI_INT, &count);
    say("recv nobody", s.MPI_SOURCE == MPI_PROC_NULL, count, b[0]);
    MPI_Irecv(b, 8, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, q);
    MPI_Isend(a, 8, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, q + 1);
    MPI_Waitall(2, q, ss);
    MPI_Sendrecv(a, 8, MPI_INT, rank ? MPI_PROC_NULL : right, 2, b, 8, MPI_INT, rank == 1 ? left : MPI_PROC_NULL, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv_init(b, 8, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, q);
    MPI_Start(q);
    MPI_Wait(q, &s);
    MPI_Request_free(q);
    MPI_Probe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &s);
    MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &s);
    say("probe nobody", s.MPI_SOURCE == MPI_PROC_NULL, flag, 0);

    /* nothing */
    MPI_Sendrecv(NULL, 0, MPI_INT, right, 3, NULL, 0, MPI_INT, left, 3, MPI_COMM_WORLD, &s);
    MPI_Get_count(&s, MPI_INT, &count);
    say("nothing", s.MPI_SOURCE == left, count, s.MPI_TAG);
    MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allreduce(NULL, b, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Datatype empty, gap;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    MPI_Isend(a, 5, empty, right, 4, MPI_COMM_WORLD, q);
    MPI_Recv(b, 7, empty, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &s);
    MPI_Wait(q, MPI_STATUS_IGNORE);
    MPI_Get_count(&s, MPI_BYTE, &count);
    say("empty type", s.MPI_SOURCE == left, count, s.MPI_TAG);
    MPI_Allgather(a, 3, empty, b, 3, empty, MPI_COMM_WORLD);
    MPI_Type_free(&empty);
    MPI_Type_vector(2, 1, 3, MPI_INT, &gap);
    MPI_Type_commit(&gap);
    MPI_Isend(a, 1, gap, right, 5, MPI_COMM_WORLD, q);
    MPI_Type_free(&gap); /* still under way */
    MPI_Recv(b, 8, MPI_INT, left, 5, MPI_COMM_WORLD, &s);
    MPI_Wait(q, MPI_STATUS_IGNORE);
    say("freed type", b[0], b[1], s.MPI_TAG);

    /* in place */
    int all[64];
    for (int i = 0; i < 64; i++) all[i] = rank + i;
    MPI_Allreduce(MPI_IN_PLACE, all, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce(rank ? all : MPI_IN_PLACE, all, 4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Gather(rank ? all : MPI_IN_PLACE, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatter(all, 2, MPI_INT, rank ? all : MPI_IN_PLACE, 2, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Scan(MPI_IN_PLACE, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    say("in place", all[0], all[1], all[2]);

    /* errors returned */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int to_nobody = MPI_Send(a, 1, MPI_INT, size + 7, 1, MPI_COMM_WORLD);
    int bad_count = MPI_Send(a, -1, MPI_INT, right, 1, MPI_COMM_WORLD);
    int bad_type = MPI_Send(a, 1, MPI_DATATYPE_NULL, right, 1, MPI_COMM_WORLD);
    say("errors", class_of(to_nobody), class_of(bad_count), class_of(bad_type));
    int bad_root = MPI_Bcast(a, 1, MPI_INT, size, MPI_COMM_WORLD);
    say("bad root", class_of(bad_root), 0, 0);
    MPI_Isend(a, 8, MPI_INT, right, 6, MPI_COMM_WORLD, q);
    int cut = MPI_Recv(b, 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &s);
    MPI_Wait(q, MPI_STATUS_IGNORE);
    say("cut", class_of(cut), s.MPI_SOURCE, s.MPI_TAG);
    MPI_Irecv(b, 1, MPI_INT, left, 7, MPI_COMM_WORLD, q);
    MPI_Irecv(b + 1, 1, MPI_INT, left, 8, MPI_COMM_WORLD, q + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(a, 8, MPI_INT, right, 7, MPI_COMM_WORLD, q + 2);
    MPI_Isend(a, 1, MPI_INT, right, 8, MPI_COMM_WORLD, q + 3);
    int some = MPI_Waitall(4, q, ss);
    say("some cut", class_of(some), class_of(ss[0].MPI_ERROR), 0);
    for (int i = 0; i < 4; i++)
        if (q[i] != MPI_REQUEST_NULL) MPI_Wait(q + i, MPI_STATUS_IGNORE);
    MPI_Irecv(b, 1, MPI_INT, left, 4711, MPI_COMM_WORLD, q);
    MPI_Cancel(q);
    MPI_Wait(q, &s);
    MPI_Test_cancelled(&s, &flag);
    say("cancelled", flag, 0, 0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void many(long n)
{
    MPI_Request *q = malloc(n * sizeof *q);
    char *b = calloc(n / 2 + 1, 1), a = 1;
    long sum = 0;
    for (long i = 0; i < n / 2; i++) MPI_Irecv(b + i, 1, MPI_CHAR, left, (int)(i % 1000), MPI_COMM_WORLD, q + i);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 0; i < n / 2; i++) MPI_Isend(&a, 1, MPI_CHAR, right, (int)(i % 1000), MPI_COMM_WORLD, q + n / 2 + i);
    MPI_Waitall((int)(n / 2 * 2), q, MPI_STATUSES_IGNORE);
    for (long i = 0; i < n / 2; i++) sum += b[i];
    say("many", sum, n / 2, 0);
    free(q);
    free(b);
}

static void exchange(void)
{
    int a[8] = { rank }, b[8];
    MPI_Request q[2];
    MPI_Status ss[2];
    MPI_Comm half;
    MPI_Irecv(b, 8, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, q);
    MPI_Isend(a, 5, MPI_INT, right, 1, MPI_COMM_WORLD, q + 1);
    MPI_Waitall(2, q, ss);
    MPI_Sendrecv(a, 3, MPI_INT, right, 2, b, 8, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, a, 8, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
}

/* Of thread number `argument`: its messages differ by their tags. */
static void *thread(void *argument)
{
    int tag = (int)(long)argument, out = 0, in = 0, index, flag;
    for (int i = 0; i < 300; i++) {
        MPI_Request q[2];
        out = i + 1000 * tag;
        MPI_Irecv(&in, 1, MPI_INT, i % 3 ? left : MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, q);
        MPI_Isend(&out, 1, MPI_INT, right, tag, MPI_COMM_WORLD, q + 1);
        if (i % 2) MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        else for (int done = 0; done < 2; done += flag) MPI_Testany(2, q, &index, &flag, MPI_STATUS_IGNORE);
        if (in != out) return "wrong message";
    }
    return NULL;
}

static void threads(void)
{
    pthread_t all[4];
    int wrong = 0;
    for (long i = 0; i < 4; i++) pthread_create(all + i, NULL, thread, (void *)(i + 1));
    for (int i = 0; i < 4; i++) {
        void *answer;
        pthread_join(all[i], &answer);
        wrong += answer != NULL;
    }
    say("threads", wrong, 0, 0);
}

/* Descriptors of regular files. MPI needs its sockets and pipes. */
static int files(int *found)
{
    struct stat about;
    int n = 0;
    for (int fd = 3; fd < 1024; fd++)
        if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) found[n++] = fd;
    return n;
}

/* Closes files that it does not know; its own file then has all their numbers. */
static int closes(void)
{
    int found[1024], n = files(found);
    char name[] = "/tmp/faults.XXXXXX";
    int own = mkstemp(name);
    unlink(name);
    if (write(own, "my bytes\n", 9) != 9) exit(1);
    for (int i = 0; i < n; i++) dup2(own, found[i]);
    return own;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "edges";
    int flag, version, subversion;
    MPI_Initialized(&flag);
    MPI_Get_version(&version, &subversion);
    int level = strcmp(mode, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, provided;
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    if (!strcmp(mode, "edges")) edges();
    if (!strcmp(mode, "threads") && provided == MPI_THREAD_MULTIPLE) threads();
    if (!strcmp(mode, "abort")) {
        exchange();
        if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 7);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (!strcmp(mode, "limited")) {
        struct rlimit limit = { atol(argv[3]), atol(argv[3]) };
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    int own = strcmp(mode, "closes") ? -1 : closes();
    if (!strcmp(mode, "many") || !strcmp(mode, "limited") || own >= 0) many(argc > 2 ? atol(argv[2]) : 1000);
    if (!strcmp(mode, "long")) {
        /* how long is rank 0's to say */
        double end = MPI_Wtime() + 120;
        for (int go = 1; go;) {
            exchange();
            go = MPI_Wtime() < end && access(argv[2], F_OK) != 0;
            MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
    }
    if (!strcmp(mode, "fork")) {
        exchange();
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            /* a child that runs on, and calls what needs no MPI_Init of its own */
            MPI_Initialized(&flag);
            _exit(flag ? 0 : 1);
        }
        int status;
        waitpid(child, &status, 0);
        say("child", WEXITSTATUS(status), 0, 0);
        fflush(stdout);
        if (rank == 0 && system("echo from a shell")) return 1;
        exchange();
    }
    if (!strcmp(mode, "exit")) {
        exchange();
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) puts("leaving");
        fflush(stdout);
        _exit(0);
    }
    MPI_Finalize();
    MPI_Initialized(&flag);
    MPI_Finalized(&flag);
    MPI_Get_version(&version, &subversion);
    say("finalized", flag, 0, 0);
    if (own >= 0) {
        struct stat about;
        char bytes[9] = "";
        fstat(own, &about);
        say("own file", about.st_size, pread(own, bytes, 9, 0), memcmp(bytes, "my bytes\n", 9));
    }
    return 0;
}
