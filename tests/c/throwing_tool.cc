// A tool that throws an exception where THROWS says: in MPI_Isend before or after it has called MPI, or in another of its functions.
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include "vef_tool.h"

static void throw_in(const char *place)
{
    const char *chosen = std::getenv("THROWS");
    if (chosen && !std::strcmp(chosen, place)) throw std::runtime_error(place);
}

static int isend(vef_layer *layer, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    throw_in("before");
    int code = vef_MPI_Isend(layer, data, count, type, to, tag, comm, request);
    throw_in("after");
    return code;
}

static int opened(vef_layer *) { throw_in("open"); return 0; }
static void closed(vef_layer *) { throw_in("close"); }
static void phase(vef_layer *, int, const char *) { throw_in("phase"); }

static const vef_intercept intercepts[] = { VEF_INTERCEPT(MPI_Isend, isend), VEF_END };
VEF_TOOL = { VEF_TOOL_HEAD("throwing"), .open = opened, .close = closed, .phase = phase, .intercepts = intercepts };
