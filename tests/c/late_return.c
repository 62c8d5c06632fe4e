/* A tool behind the recorder: the wait for the request that the program asks about returns late, after the program has had time to be
 * given its handle anew. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include "vef_tool.h"

static int wait_call(vef_layer *layer, MPI_Request *request, MPI_Status *status)
{
    int code = vef_MPI_Wait(layer, request, status);
    void (*over)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "wait_is_over");
    if (over) over();
    return code;
}

static const vef_intercept intercepts[] = { VEF_INTERCEPT(MPI_Wait, wait_call), VEF_END };
VEF_TOOL = { VEF_TOOL_HEAD("late return"), .intercepts = intercepts };
