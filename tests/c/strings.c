/* A tool that writes down what it is shown of calls with strings, callbacks and memory: for the test of Fortran's. */
#include <stdio.h>
#include <string.h>
#include "vef_tool.h"

static char text[4000];
#define SAY(...) snprintf(text + strlen(text), sizeof text - strlen(text), __VA_ARGS__)

static int set_name(vef_layer *layer, MPI_Comm comm, const char *name)
{
    SAY("set |%s|\n", name);
    return vef_MPI_Comm_set_name(layer, comm, name);
}

static int get_name(vef_layer *layer, MPI_Comm comm, char *name, int *length)
{
    int code = vef_MPI_Comm_get_name(layer, comm, name, length);
    SAY("get |%s| %d\n", name, *length);
    return code;
}

static int info_set(vef_layer *layer, MPI_Info info, const char *key, const char *value)
{
    int keys, code = vef_MPI_Info_set(layer, info, key, value);
    MPI_Info_get_nkeys(info, &keys);
    SAY("info |%s| |%s| %d\n", key, value, keys);
    return code;
}

static int op_create(vef_layer *layer, vef_function function, int commute, MPI_Op *op)
{
    int commutes = 0, code = vef_MPI_Op_create(layer, function, commute, op);
    MPI_Op_commutative(*op, &commutes);
    SAY("op %d %d\n", !!commute, !!commutes);
    return code;
}

static int file_open(vef_layer *layer, MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file)
{
    int same = 0, code = vef_MPI_File_open(layer, comm, name, mode, info, file);
    MPI_File_get_amode(*file, &same);
    SAY("file |%s| %d\n", name, same == mode);
    return code;
}

static int win_create(vef_layer *layer, void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    void *seen = NULL;
    int flag, code = vef_MPI_Win_create(layer, base, size, unit, info, comm, win);
    MPI_Win_get_attr(*win, MPI_WIN_BASE, &seen, &flag);
    SAY("win %ld %d %d\n", (long)size, unit, flag && seen == base);
    return code;
}

static int send(vef_layer *layer, const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    SAY("send %d of %.0f\n", count, *(const double *)data);
    return vef_MPI_Send(layer, data, count, type, to, tag, comm);
}

static int rank_of(vef_layer *layer, MPI_Comm comm, int *rank)
{
    int code = vef_MPI_Comm_rank(layer, comm, rank);
    SAY("rank %d\n", *rank);
    return code;
}

static void close_tool(vef_layer *layer)
{
    if (strncmp(text, "rank 0\n", 7) == 0)
        fputs(text, stdout);
    fflush(stdout);
    (void)layer;
}

static const vef_intercept intercepts[] = {
    VEF_INTERCEPT(MPI_Comm_set_name, set_name), VEF_INTERCEPT(MPI_Comm_get_name, get_name),
    VEF_INTERCEPT(MPI_Info_set, info_set),      VEF_INTERCEPT(MPI_Op_create, op_create),
    VEF_INTERCEPT(MPI_File_open, file_open),    VEF_INTERCEPT(MPI_Win_create, win_create),
    VEF_INTERCEPT(MPI_Send, send),              VEF_INTERCEPT(MPI_Comm_rank, rank_of),
    VEF_END,
};

VEF_TOOL = { VEF_TOOL_HEAD("strings"), .close = close_tool, .intercepts = intercepts };
