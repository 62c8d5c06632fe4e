/* A tool that writes down what it hears of: for tests of the tool chain. Refuses where SEEN_REFUSE is set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vef_tool.h"

typedef struct {
    int rank, any, pcontrols, phases, mismatches;
} seen;

static int open_tool(vef_layer *layer)
{
    if (getenv("SEEN_REFUSE")) {
        strcpy(layer->reason, "it was told to refuse");
        return 1;
    }
    layer->context = calloc(1, sizeof(seen));
    return layer->context ? 0 : 2;
}

static int any(vef_layer *layer, vef_call *call)
{
    seen *s = layer->context;
    int code = vef_pass(layer, call);
    __atomic_add_fetch(&s->any, 1, __ATOMIC_RELAXED);
    if (strcmp(layer->names[call->number], "MPI_Init") == 0)
        vef_MPI_Comm_rank(layer, MPI_COMM_WORLD, &s->rank);
    /* What is called by its plain name goes past all tools: it must not come back to this handler. */
    if (strcmp(layer->names[call->number], "MPI_Wait") == 0) {
        int before = s->any, flag;
        MPI_Initialized(&flag);
        s->mismatches += s->any != before || !flag;
    }
    return code;
}

static void phase(vef_layer *layer, int begins, const char *name)
{
    ((seen *)layer->context)->phases += begins ? 1 : 100;
    (void)name;
}

static void pcontrol(vef_layer *layer, int level)
{
    ((seen *)layer->context)->pcontrols++;
    (void)level;
}

static void close_tool(vef_layer *layer)
{
    seen *s = layer->context;
    if (s->rank == 0)
        printf("seen.%d at %d: any %d pcontrols %d phases %d mismatches %d\n", layer->instance, layer->position, s->any,
               s->pcontrols, s->phases, s->mismatches);
    fflush(stdout);
}

VEF_TOOL = { VEF_TOOL_HEAD("seen"), .open = open_tool, .close = close_tool, .any = any, .phase = phase,
             .pcontrol = pcontrol };
