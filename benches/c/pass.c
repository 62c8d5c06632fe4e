/* A tool that hands everything on: with -DANY through its handler for any function, else by a handler of each function that
 * micro.c calls. */
#include "vef_tool.h"

#ifdef ANY
static int any(vef_layer *layer, vef_call *call) { return vef_pass(layer, call); }
VEF_TOOL = { VEF_TOOL_HEAD("pass any"), .any = any };
#else
static int comm_rank(vef_layer *l, MPI_Comm comm, int *rank) { return vef_MPI_Comm_rank(l, comm, rank); }
static int irecv(vef_layer *l, void *b, int n, MPI_Datatype d, int source, int tag, MPI_Comm comm, MPI_Request *r)
{
    return vef_MPI_Irecv(l, b, n, d, source, tag, comm, r);
}
static int isend(vef_layer *l, const void *b, int n, MPI_Datatype d, int dest, int tag, MPI_Comm comm, MPI_Request *r)
{
    return vef_MPI_Isend(l, b, n, d, dest, tag, comm, r);
}
static int waitall(vef_layer *l, int n, MPI_Request *r, MPI_Status *s) { return vef_MPI_Waitall(l, n, r, s); }
static const vef_intercept intercepts[] = {
    VEF_INTERCEPT(MPI_Comm_rank, comm_rank), VEF_INTERCEPT(MPI_Irecv, irecv), VEF_INTERCEPT(MPI_Isend, isend),
    VEF_INTERCEPT(MPI_Waitall, waitall), VEF_END,
};
VEF_TOOL = { VEF_TOOL_HEAD("pass"), .intercepts = intercepts };
#endif
