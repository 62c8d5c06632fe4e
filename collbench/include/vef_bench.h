/* Operations and algorithms of yours for `vef bench coll --library FILE.so`.
 *
 *     mpicc -shared -fPIC -I collbench/include -o mine.so mine.c
 *     mpirun -n 4 vef bench coll --library ./mine.so --op my-operation,bcast --algorithm my-algorithm
 *
 * A library defines vef_bench_register, which every rank calls once, when MPI is initialised. It must be linked with the MPI that
 * the benchmark runs on. A name of a library's comes before the same name of the benchmark's own. All functions are called by all ranks of `comm`, which only this measurement uses; they return MPI_SUCCESS or
 * an error code of MPI, which ends the benchmark. Strings are copied. */
#ifndef VEF_BENCH_H
#define VEF_BENCH_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VEF_BENCH_ABI 1

/* An operation: whatever the ranks do together, with buffers of its own. */
typedef struct vef_bench_operation {
    /* Makes what measurements of `bytes` bytes need; *state is handed to the others. Untimed. */
    int (*prepare)(MPI_Comm comm, int root, size_t bytes, void **state);
    /* Does it once; this is timed. */
    int (*run)(void *state);
    /* Whether the run before left what it should: 0 if so, else any number, with the reason in text, of which there are `room` bytes.
     * May be NULL: results then are marked as unverified. */
    int (*check)(void *state, char *text, size_t room);
    /* Frees the state. May be NULL. */
    void (*release)(void *state);
} vef_bench_operation;

/* An algorithm for a collective operation of MPI: does it once. `count` elements of `datatype` are a block (the vector where there are no
 * blocks); all blocks are equal, also of the vector forms. `input` and `output` are what MPI calls send and receive buffer, at ranks where MPI
 * has none as long as elsewhere; a broadcast has its data in `output`. `op` means something in reductions, `root` in rooted operations.
 * The result is verified from every root before it is timed, by the operation's definition. */
typedef int vef_bench_algorithm(const void *input, void *output, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm);

typedef struct vef_bench {
    uint32_t abi;  /* VEF_BENCH_ABI of the program; functions are added at the end */
    uint32_t size; /* sizeof this, as the program has it */
    /* Registers an operation under a name for --op. Returns 0, else the name is taken or a function is missing. */
    int (*operation)(struct vef_bench *bench, const char *name, const vef_bench_operation *functions);
    /* Registers an algorithm under a name for --algorithm, for an operation as --op has it: "bcast", "reduce-scatter" … Returns 0, else
     * there is no such operation, or the name is taken. */
    int (*algorithm)(struct vef_bench *bench, const char *operation, const char *name, vef_bench_algorithm *run);
} vef_bench;

/* Yours: registers all, and returns 0; any other number refuses. */
int vef_bench_register(vef_bench *bench);

#ifdef __cplusplus
}
#endif
#endif
