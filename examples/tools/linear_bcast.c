/* A tool in C: broadcasts by sends and receives of the rest of the chain.
 *
 *     mpicc -shared -fPIC -I interpose/include -o linear_bcast.so examples/tools/linear_bcast.c
 *     vef run --tool profile --tool ./linear_bcast.so --tool profile -n 4 -- ./program
 *
 * The first profile shows the program's broadcasts, the second what they were replaced by: its root sends to every other
 * rank. A real tool would use a tag space of its own; this one works where the program leaves tag 0 of that
 * communicator alone meanwhile. */
#include "vef_tool.h"

static int bcast(vef_layer *layer, void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, inter, code = MPI_SUCCESS;
    /* Between the two groups of an inter-communicator a root means something else. */
    vef_MPI_Comm_test_inter(layer, comm, &inter);
    if (inter)
        return vef_MPI_Bcast(layer, buffer, count, datatype, root, comm);
    vef_MPI_Comm_rank(layer, comm, &rank);
    vef_MPI_Comm_size(layer, comm, &size);
    if (rank != root)
        return vef_MPI_Recv(layer, buffer, count, datatype, root, 0, comm, MPI_STATUS_IGNORE);
    for (int peer = 0; peer < size && code == MPI_SUCCESS; peer++)
        if (peer != root)
            code = vef_MPI_Send(layer, buffer, count, datatype, peer, 0, comm);
    return code;
}

static const vef_intercept intercepts[] = { VEF_INTERCEPT(MPI_Bcast, bcast), VEF_END };

VEF_TOOL = { VEF_TOOL_HEAD("linear_bcast"), .intercepts = intercepts };
