/* Operations for `vef bench coll --library` that go wrong: `dies` (rank 1 is killed by a run of 1000 bytes or more), `fails` (a run at rank 1 returns
 * an error), `unchecked` (without a check), `jumps` (a run makes the clock of wtime.c jump as VEF_TEST_JUMP says, RANK:SECONDS:RUN). */
#define _GNU_SOURCE
#include "vef_bench.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    MPI_Comm comm;
    size_t bytes;
    int rank;
} State;

static int prepare(MPI_Comm comm, int root, size_t bytes, void **made) {
    State *state = malloc(sizeof *state);
    (void)root;
    state->comm = comm;
    state->bytes = bytes;
    *made = state;
    return MPI_Comm_rank(comm, &state->rank);
}

static int dies(void *given) {
    State *state = given;
    if (state->rank == 1 && state->bytes >= 1000) kill(getpid(), SIGKILL);
    return MPI_Barrier(state->comm);
}

static int fails(void *given) {
    State *state = given;
    return state->rank == 1 ? MPI_ERR_OTHER : MPI_Barrier(state->comm);
}

static int jumps(void *given) {
    State *state = given;
    static int runs;
    int rank, run;
    double by;
    void (*jump)(double) = (void (*)(double))dlsym(RTLD_DEFAULT, "vef_test_jump");
    const char *how = getenv("VEF_TEST_JUMP");
    ++runs;
    if (jump && how && sscanf(how, "%d:%lf:%d", &rank, &by, &run) == 3 && rank == state->rank && runs == run) jump(by);
    return MPI_Barrier(state->comm);
}

static int unchecked(void *given) { return MPI_Barrier(((State *)given)->comm); }

static int right(void *state, char *text, size_t room) {
    (void)state, (void)text, (void)room;
    return 0;
}

int vef_bench_register(vef_bench *bench) {
    const vef_bench_operation first = {prepare, dies, right, free}, second = {prepare, fails, NULL, free}, third = {prepare, unchecked, NULL, free}, fourth = {prepare, jumps, right, free};
    /* A name is registered once. */
    if (!bench->operation(bench, "dies", &first) && !bench->operation(bench, "dies", &second)) return 2;
    return bench->operation(bench, "fails", &second) || bench->operation(bench, "unchecked", &third) || bench->operation(bench, "jumps", &fourth);
}
