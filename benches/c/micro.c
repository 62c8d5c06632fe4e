/* What one MPI call costs: micro MODE ITERATIONS, prints nanoseconds of the processor a call: other programs take time, but not these.
 *     local   MPI_Comm_rank: a call that moves nothing
 *     self    MPI_Irecv, MPI_Isend of 8 bytes to the same rank, MPI_Waitall of both: three calls an iteration
 *     allreduce   MPI_Allreduce of 8 bytes over all ranks
 *     floor   no call: two clock reads and an append of 40 bytes to memory that is mapped already
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double nanos(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static double now(void)
{
    return nanos(CLOCK_PROCESS_CPUTIME_ID);
}

static unsigned long long ticks(void)
{
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return nanos(CLOCK_MONOTONIC);
#endif
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *mode = argc > 1 ? argv[1] : "self";
    long iterations = argc > 2 ? atol(argv[2]) : 1000000, calls = iterations;
    int rank, same;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double out = 1, in = 0;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    size_t room = !strcmp(mode, "floor") ? iterations : 1;
    unsigned long long (*log)[5] = malloc(room * sizeof *log);
    memset(log, 1, room * sizeof *log);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now();
    if (!strcmp(mode, "local")) {
        for (long i = 0; i < iterations; i++) MPI_Comm_rank(MPI_COMM_WORLD, &same);
    } else if (!strcmp(mode, "self")) {
        calls = 3 * iterations;
        for (long i = 0; i < iterations; i++) {
            MPI_Irecv(&in, 1, MPI_DOUBLE, rank, 7, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(&out, 1, MPI_DOUBLE, rank, 7, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, statuses);
        }
    } else if (!strcmp(mode, "allreduce")) {
        for (long i = 0; i < iterations; i++) MPI_Allreduce(&out, &in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else if (!strcmp(mode, "floor")) {
        for (long i = 0; i < iterations; i++) {
            unsigned long long start = ticks(), record[5] = { start, ticks(), 1, 2, 3 };
            memcpy(log[i], record, sizeof record);
            __asm__ volatile("" ::: "memory");
        }
    } else {
        fprintf(stderr, "mode?\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double end = now();
    if (rank == 0) printf("%.3f\n", (end - begin) / calls);
    MPI_Finalize();
    return 0;
}
