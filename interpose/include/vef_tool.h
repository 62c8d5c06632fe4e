/* vef_tool.h: interface for tools in C between an MPI program and its MPI. See docs/tools.md; examples/tools/ has a tool.
 *
 * A tool is a shared library (cc -shared -fPIC, with the mpicc of the program's MPI) that defines VEF_TOOL once. MPI_Init loads
 * the tools named by TOOLS (or VEF_TOOLS, or `vef run --tool`). A tool that is named several times has several instances,
 * called layers, each with its own context.
 *
 *     static int bcast(vef_layer *layer, void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
 *     {
 *         int rank;
 *         vef_MPI_Comm_rank(layer, comm, &rank);               -- any function of the rest of the chain
 *         return vef_MPI_Bcast(layer, buffer, count, type, root, comm);
 *     }
 *     static const vef_intercept intercepts[] = { VEF_INTERCEPT(MPI_Bcast, bcast), VEF_END };
 *     VEF_TOOL = { VEF_TOOL_HEAD("my tool"), .intercepts = intercepts };
 *
 * Rules. vef_MPI_x(layer, ...) calls the next tool of the chain, or MPI. Calls by the plain names MPI_x and PMPI_x bypass all
 * tools. Handlers may run in any thread of the program. All handlers of a layer get the same layer, whose `context` belongs to
 * the tool. MPI_Init may be intercepted; before it returns, no MPI function may be called. A C++ exception that leaves a
 * function of the tool ends the chain and the recording; the call goes to MPI, and the program continues.
 */
#ifndef VEF_TOOL_H
#define VEF_TOOL_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VEF_TOOL_ABI 1

typedef void (*vef_function)(void);

/* The next handler of a function. */
typedef struct {
    vef_function function; /* int (*)(vef_layer *, the function's parameters) */
    struct vef_layer *layer;
} vef_cell;

/* A tool at its place in the chain. */
typedef struct vef_layer {
    void *context;            /* data of the tool; null before `open` */
    const vef_cell *next;     /* by function number */
    const char *const *names; /* "MPI_Abort", ... by function number */
    const char *directory;    /* for the tool's files; it may not exist yet */
    int position;             /* in the chain, from 0 */
    int instance;             /* of this tool in the chain, from 0 */
    char reason[256];         /* set by `open` if it refuses */
} vef_layer;

/* A call in the form for a handler of any function. */
typedef struct {
    uint32_t number;
    uint32_t count;   /* of arguments */
    uintptr_t *words; /* the arguments; the upper 32 bits of an int are undefined */
} vef_call;

typedef struct {
    int number;
    vef_function function; /* null: the end of the list */
} vef_intercept;

typedef struct {
    uint32_t abi, size;
    uint64_t table;
    const char *name;
    int (*open)(vef_layer *layer);                                 /* called first; not 0: the tool refuses */
    void (*close)(vef_layer *layer);                               /* after MPI_Finalize, or at the end of the program */
    void (*phase)(vef_layer *layer, int begins, const char *name); /* see vef_phase.h */
    void (*pcontrol)(vef_layer *layer, int level);                 /* MPI_Pcontrol; called once for every tool */
    const vef_intercept *intercepts;                               /* typed handlers */
    int (*any)(vef_layer *layer, vef_call *call);                  /* handler of functions without a typed one */
    int (*wants)(vef_layer *layer, int number);                    /* whether `any` handles a function; null: yes */
} vef_descriptor;

extern const vef_descriptor vef_tool_descriptor; /* C++ would keep a constant to its file */
#define VEF_TOOL __attribute__((visibility("default"))) const vef_descriptor vef_tool_descriptor
#define VEF_TOOL_HEAD(tool_name) \
    .abi = VEF_TOOL_ABI, .size = sizeof(vef_descriptor), .table = VEF_TOOL_TABLE, .name = tool_name
#define VEF_INTERCEPT(mpi_function, handler) \
    { VEF_##mpi_function, (vef_function)(1 ? (handler) : (vef_type_##mpi_function)0) }
#define VEF_END { 0, NULL }

/* For each MPI function: its number VEF_MPI_x, the type of its handlers vef_type_MPI_x, and vef_MPI_x(layer, ...), which
 * calls the next one. */
#define VEF_FUNCTION(number, name, parameters, arguments)                           \
    enum { VEF_##name = number };                                                   \
    typedef int(*vef_type_##name) parameters;                                       \
    static inline int vef_##name parameters                                         \
    {                                                                               \
        const vef_cell vef_to = layer->next[number];                                \
        return ((vef_type_##name)vef_to.function)arguments;                         \
    }
#include "vef_tool_functions.h"
#undef VEF_FUNCTION

/* Whether the call of this thread ends in a Fortran function that no tool can replace (docs/tools.md): arguments that the tool passes on
 * have no effect, and a buffer may be the first element of an array section with holes. */
int vef_call_is_shown(void);

/* Passes a call on, in a handler of any function. */
static inline int vef_pass(vef_layer *layer, vef_call *call)
{
    const vef_cell to = layer->next[call->number];
    uintptr_t *w = call->words;
    typedef uintptr_t u;
    typedef vef_layer *l;
    switch (call->count) {
#define VEF_AS(...) ((int (*)(__VA_ARGS__))to.function)
    case 0: return VEF_AS(l)(to.layer);
    case 1: return VEF_AS(l, u)(to.layer, w[0]);
    case 2: return VEF_AS(l, u, u)(to.layer, w[0], w[1]);
    case 3: return VEF_AS(l, u, u, u)(to.layer, w[0], w[1], w[2]);
    case 4: return VEF_AS(l, u, u, u, u)(to.layer, w[0], w[1], w[2], w[3]);
    case 5: return VEF_AS(l, u, u, u, u, u)(to.layer, w[0], w[1], w[2], w[3], w[4]);
    case 6: return VEF_AS(l, u, u, u, u, u, u)(to.layer, w[0], w[1], w[2], w[3], w[4], w[5]);
    case 7: return VEF_AS(l, u, u, u, u, u, u, u)(to.layer, w[0], w[1], w[2], w[3], w[4], w[5], w[6]);
    case 8: return VEF_AS(l, u, u, u, u, u, u, u, u)(to.layer, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]);
    case 9:
        return VEF_AS(l, u, u, u, u, u, u, u, u, u)(to.layer, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]);
    case 10:
        return VEF_AS(l, u, u, u, u, u, u, u, u, u, u)(to.layer, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8],
                                                      w[9]);
    case 11:
        return VEF_AS(l, u, u, u, u, u, u, u, u, u, u, u)(to.layer, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7],
                                                         w[8], w[9], w[10]);
    case 12:
        return VEF_AS(l, u, u, u, u, u, u, u, u, u, u, u, u)(to.layer, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7],
                                                            w[8], w[9], w[10], w[11]);
    default:
        return VEF_AS(l, u, u, u, u, u, u, u, u, u, u, u, u, u)(to.layer, w[0], w[1], w[2], w[3], w[4], w[5], w[6],
                                                               w[7], w[8], w[9], w[10], w[11], w[12]);
#undef VEF_AS
    }
}

#ifdef __cplusplus
}
#endif

#endif
