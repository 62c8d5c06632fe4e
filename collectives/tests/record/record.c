/* Records, below MPI's own collectives, which messages each of them sends.
 *
 * For every operation and the sizes below, up to the largest asked for, one call is made, and what the library's collective code hands to its
 * point-to-point layer is counted: Open MPI by replacing the send entries of the exported table `mca_pml`, MPICH by
 * linking its static library with --wrap of its collectives' send functions. Rank 0 prints
 *     <operation> <bytes> <ranks> <root> <messages> <their bytes> <digest>
 * bytes being the vector's, or one block's; the vector forms use unequal blocks (see count_of). The digest is FNV-1a of
 *     <src>:<dst>:<messages>:<bytes> 
 * of all pairs of ranks that exchange anything; with `pairs` as a third argument these stand behind it.
 *
 *     record [LARGEST_VECTOR [LARGEST_BLOCK [pairs]]]
 *     record creations
 *
 *     record between FIRST [pairs]
 *     record phases
 *     record windows
 *
 * The second does so for the functions that create communicators, and that open, view, access and close files; bytes and root are 0. The third
 * does so for collectives between the first FIRST ranks and the others, blocking and (I…) not, with some sizes, and roots in both groups. Ranks are
 * those of MPI_COMM_WORLD. The fourth, of MPICH alone, prints what members of a file exchange with aggregators in collective accesses that interleave, collectives left
 * out. The fifth does so for the functions of windows, in the order of `steps`; in those between Win_lock and Win_wait rank 0 is the origin and rank 1 the target,
 * and the pairs stand behind the digest. What MPICH leaves to UCX stands behind these: put:BYTES, get:BYTES and flush, of rank 0.
 */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A process that waits for a message sleeps, as there are more processes than processors: Open MPI calls this when it runs with
 * mpi_yield_when_idle, MPICH from below. */
int sched_yield(void)
{
    usleep(20);
    return 0;
}

static int ranks, rank, recording, phases;
static long long *sent; /* messages and bytes to each rank */
static MPI_Comm quiet; /* its messages are not recorded */

/* Of collectives between groups: the rank in MPI_COMM_WORLD. */
static MPI_Group world_group;
static int in_world(MPI_Comm comm, int dst)
{
    MPI_Group group;
    int inter, found = dst;
    PMPI_Comm_test_inter(comm, &inter);
    if (inter) PMPI_Comm_remote_group(comm, &group);
    else PMPI_Comm_group(comm, &group);
    PMPI_Group_translate_ranks(group, 1, &dst, world_group, &found);
    PMPI_Group_free(&group);
    return found;
}

/* A message to the sender itself is a copy in memory, as our schedules have it. */
static void note(long long count, MPI_Datatype type, int dst, MPI_Comm comm)
{
    int size = 0;
    if (!recording || phases == 1 || dst < 0 || comm == quiet) return;
    if (world_group != MPI_GROUP_NULL) dst = in_world(comm, dst);
    if (dst == rank) return;
    PMPI_Type_size(type, &size);
    sent[2 * dst] += 1;
    sent[2 * dst + 1] += count * size;
}

#ifdef OPEN_MPI
extern void *mca_pml[];
enum { ISEND_INIT = 9, ISEND = 10, SEND = 11 };
typedef int isend_fn(const void *, size_t, MPI_Datatype, int, int, int, MPI_Comm, MPI_Request *);
typedef int send_fn(const void *, size_t, MPI_Datatype, int, int, int, MPI_Comm);
static isend_fn *true_isend, *true_isend_init;
static send_fn *true_send;
static int my_isend(const void *b, size_t n, MPI_Datatype t, int d, int tag, int m, MPI_Comm c, MPI_Request *r)
{
    note((long long)n, t, d, c);
    return true_isend(b, n, t, d, tag, m, c, r);
}
/* A persistent request is started once within one collective. */
static int my_isend_init(const void *b, size_t n, MPI_Datatype t, int d, int tag, int m, MPI_Comm c, MPI_Request *r)
{
    note((long long)n, t, d, c);
    return true_isend_init(b, n, t, d, tag, m, c, r);
}
static int my_send(const void *b, size_t n, MPI_Datatype t, int d, int tag, int m, MPI_Comm c)
{
    note((long long)n, t, d, c);
    return true_send(b, n, t, d, tag, m, c);
}
static void hook(void)
{
    true_isend = (isend_fn *)mca_pml[ISEND];
    true_isend_init = (isend_fn *)mca_pml[ISEND_INIT];
    true_send = (send_fn *)mca_pml[SEND];
    mca_pml[ISEND] = (void *)my_isend;
    mca_pml[ISEND_INIT] = (void *)my_isend_init;
    mca_pml[SEND] = (void *)my_send;
}
#else
/* What ROMIO sends. */
int __real_PMPI_Isend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int __wrap_PMPI_Isend(const void *b, int n, MPI_Datatype t, int d, int tag, MPI_Comm c, MPI_Request *r)
{
    int mode = phases;
    if (mode) phases = 2, note(n, t, d, c), phases = mode;
    return __real_PMPI_Isend(b, n, t, d, tag, c, r);
}
/* An iov of UCX: pieces with their sizes. */
static long long bytes_of(const void *iov, size_t pieces)
{
    const struct { void *at; size_t bytes; } *piece = iov;
    long long all = 0;
    while (pieces--) all += piece++->bytes;
    return all;
}
typedef int Comm; typedef void Req; typedef int Err;
/* An object of MPICH begins with its handle. */
static MPI_Comm handle_of(const Comm *comm) { return *comm; }
int __real_MPIC_Send(const void *, MPI_Aint, MPI_Datatype, int, int, Comm *, Err *);
int __wrap_MPIC_Send(const void *b, MPI_Aint n, MPI_Datatype t, int d, int tag, Comm *c, Err *e)
{ note(n, t, d, handle_of(c)); return __real_MPIC_Send(b, n, t, d, tag, c, e); }
int __real_MPIC_Isend(const void *, MPI_Aint, MPI_Datatype, int, int, Comm *, Req **, Err *);
int __wrap_MPIC_Isend(const void *b, MPI_Aint n, MPI_Datatype t, int d, int tag, Comm *c, Req **r, Err *e)
{ note(n, t, d, handle_of(c)); return __real_MPIC_Isend(b, n, t, d, tag, c, r, e); }
int __real_MPIC_Issend(const void *, MPI_Aint, MPI_Datatype, int, int, Comm *, Req **, Err *);
int __wrap_MPIC_Issend(const void *b, MPI_Aint n, MPI_Datatype t, int d, int tag, Comm *c, Req **r, Err *e)
{ note(n, t, d, handle_of(c)); return __real_MPIC_Issend(b, n, t, d, tag, c, r, e); }
int __real_MPIC_Ssend(const void *, MPI_Aint, MPI_Datatype, int, int, Comm *, Err *);
int __wrap_MPIC_Ssend(const void *b, MPI_Aint n, MPI_Datatype t, int d, int tag, Comm *c, Err *e)
{ note(n, t, d, handle_of(c)); return __real_MPIC_Ssend(b, n, t, d, tag, c, e); }
int __real_MPIC_Sendrecv(const void *, MPI_Aint, MPI_Datatype, int, int, void *, MPI_Aint, MPI_Datatype, int, int, Comm *, MPI_Status *, Err *);
int __wrap_MPIC_Sendrecv(const void *b, MPI_Aint n, MPI_Datatype t, int d, int tag, void *rb, MPI_Aint rn, MPI_Datatype rt, int s, int rtag, Comm *c, MPI_Status *st, Err *e)
{ note(n, t, d, handle_of(c)); return __real_MPIC_Sendrecv(b, n, t, d, tag, rb, rn, rt, s, rtag, c, st, e); }
int __real_MPIC_Sendrecv_replace(void *, MPI_Aint, MPI_Datatype, int, int, int, int, Comm *, MPI_Status *, Err *);
int __wrap_MPIC_Sendrecv_replace(void *b, MPI_Aint n, MPI_Datatype t, int d, int tag, int s, int rtag, Comm *c, MPI_Status *st, Err *e)
{ note(n, t, d, handle_of(c)); return __real_MPIC_Sendrecv_replace(b, n, t, d, tag, s, rtag, c, st, e); }
unsigned __real_ucp_worker_progress(void *);
unsigned __wrap_ucp_worker_progress(void *worker)
{
    unsigned events = __real_ucp_worker_progress(worker);
    if (!events) sched_yield();
    return events;
}
/* One-sided: rank 0 is the origin and rank 1 the target. */
static char by_ucx[1000];
static void ucx(const char *what, size_t bytes)
{
    if (recording && rank == 0) sprintf(by_ucx + strlen(by_ucx), bytes ? " %s:%zu" : " %s", what, bytes);
}
void *__real_ucp_am_send_nb(void *, unsigned short, const void *, size_t, unsigned long, void *, unsigned);
void *__wrap_ucp_am_send_nb(void *e, unsigned short id, const void *b, size_t n, unsigned long t, void *f, unsigned g)
{ if (rank < 2) note((t & 7) == 2 ? bytes_of(b, n) : n, MPI_BYTE, 1 - rank, MPI_COMM_NULL); return __real_ucp_am_send_nb(e, id, b, n, t, f, g); }
int __real_ucp_put_nbi(void *, const void *, size_t, unsigned long, void *);
int __wrap_ucp_put_nbi(void *e, const void *b, size_t n, unsigned long a, void *k)
{ ucx("put", n); return __real_ucp_put_nbi(e, b, n, a, k); }
int __real_ucp_get_nbi(void *, void *, size_t, unsigned long, void *);
int __wrap_ucp_get_nbi(void *e, void *b, size_t n, unsigned long a, void *k)
{ ucx("get", n); return __real_ucp_get_nbi(e, b, n, a, k); }
int __real_ucp_ep_flush(void *);
int __wrap_ucp_ep_flush(void *e) { ucx("flush", 0); return __real_ucp_ep_flush(e); }
void *__real_ucp_worker_flush_nb(void *, unsigned, void *);
void *__wrap_ucp_worker_flush_nb(void *w, unsigned g, void *f) { ucx("flush", 0); return __real_ucp_worker_flush_nb(w, g, f); }
static void hook(void) {}
#endif

/* Bytes of rank i's block in the vector forms. */
static int count_of(int i, int bytes) { return bytes * (i % 3); }

static char *in, *out;
static int *ca, *da, *cb, *db;
static MPI_Datatype *types;

static void call(const char *op, int n, int root)
{
    MPI_Comm w = MPI_COMM_WORLD;
    int i;
    for (i = 0; i < ranks; i++) {
        ca[i] = cb[i] = count_of(i, n);
        da[i] = db[i] = i ? da[i - 1] + ca[i - 1] : 0;
        types[i] = MPI_BYTE;
    }
    if (!strcmp(op, "bcast")) MPI_Bcast(out, n, MPI_BYTE, root, w);
    else if (!strcmp(op, "reduce")) MPI_Reduce(in, out, n, MPI_BYTE, MPI_BOR, root, w);
    else if (!strcmp(op, "allreduce")) MPI_Allreduce(in, out, n, MPI_BYTE, MPI_BOR, w);
    else if (!strcmp(op, "gather")) MPI_Gather(in, n, MPI_BYTE, out, n, MPI_BYTE, root, w);
    else if (!strcmp(op, "scatter")) MPI_Scatter(in, n, MPI_BYTE, out, n, MPI_BYTE, root, w);
    else if (!strcmp(op, "allgather")) MPI_Allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, w);
    else if (!strcmp(op, "barrier")) MPI_Barrier(w);
    else if (!strcmp(op, "alltoall")) MPI_Alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, w);
    else if (!strcmp(op, "gatherv")) MPI_Gatherv(in, count_of(rank, n), MPI_BYTE, out, ca, da, MPI_BYTE, root, w);
    else if (!strcmp(op, "scatterv")) MPI_Scatterv(in, ca, da, MPI_BYTE, out, count_of(rank, n), MPI_BYTE, root, w);
    else if (!strcmp(op, "allgatherv")) MPI_Allgatherv(in, count_of(rank, n), MPI_BYTE, out, ca, da, MPI_BYTE, w);
    else if (!strcmp(op, "reduce-scatter")) MPI_Reduce_scatter(in, out, ca, MPI_BYTE, MPI_BOR, w);
    else if (!strcmp(op, "reduce-scatter-block")) MPI_Reduce_scatter_block(in, out, n, MPI_BYTE, MPI_BOR, w);
    else if (!strcmp(op, "scan")) MPI_Scan(in, out, n, MPI_BYTE, MPI_BOR, w);
    else if (!strcmp(op, "exscan")) MPI_Exscan(in, out, n, MPI_BYTE, MPI_BOR, w);
    else {
        /* rank i sends count_of(i + j) to rank j */
        for (i = 0; i < ranks; i++) {
            ca[i] = cb[i] = count_of(i + rank, n);
            da[i] = db[i] = i ? da[i - 1] + ca[i - 1] : 0;
        }
        if (!strcmp(op, "alltoallv")) MPI_Alltoallv(in, ca, da, MPI_BYTE, out, cb, db, MPI_BYTE, w);
        else MPI_Alltoallw(in, ca, da, types, out, cb, db, types, w);
    }
}

static const char *creations[] = { "Comm_dup", "Comm_dup_with_info", "Comm_create", "Comm_create_group", "Comm_idup",
    "Comm_split", "Cart_create", "Cart_sub", "Graph_create", "Dist_graph_create_adjacent", "File_open", "File_set_view",
    "File_set_size", "File_preallocate", "File_sync", "File_seek_shared", "File_write_at_all", "File_read_at_all",
    "File_write_ordered", "File_write_at_all_begin", "File_write_at_all_end", "File_write_ordered_begin", "File_write_ordered_end",
    "File_set_atomicity", "File_set_info", "File_close", "Comm_split_type", "Dist_graph_create", "Comm_disconnect" };
static MPI_File file;
static const char *steps[] = { "Win_allocate", "Win_free", "Win_create_dynamic", "Win_free", "Win_allocate_shared", "Win_free", "Win_create", "Win_set_info",
    "Win_fence", "Win_fence_noprecede", "Win_fence_nosucceed", "Win_fence", "Put_ring", "Win_fence", "Win_fence_nosucceed", "Win_lock", "Win_unlock", "Win_lock_exclusive",
    "Put", "Win_unlock", "Win_lock", "Put", "Put_large", "Win_flush_local", "Win_flush", "Win_flush", "Get", "Get_large", "Win_flush", "Accumulate", "Accumulate_large", "Win_unlock",
    "Win_lock_nocheck", "Put", "Win_unlock", "Win_lock_all", "Put", "Win_flush_all", "Win_flush_all", "Fetch_and_op", "Compare_and_swap", "Get_accumulate", "Win_unlock_all", "Win_lock_all",
    "Win_unlock_all", "Win_post", "Win_start", "Put", "Win_complete", "Win_wait", "Win_post", "Win_start", "Win_complete", "Win_wait", "Win_free" };
static MPI_Win window = MPI_WIN_NULL;
static const char *accesses[] = { "Turned_write", "Turned_read", "Far_write", "View_write", "View_read" };
static char accessed[20000000];
/* Between two groups: the own one, the inter-communicator, and the number of ranks in the first. */
static MPI_Comm own_group, inter;
static int first_size;
static char file_name[4096]; /* beside the program */

/* A function of windows, or a transfer of 100 or 20000 bytes. Returns whether there is no window: components of Open MPI make some kinds only. */
static int step(const char *name)
{
    static char shared[50000], own[20000];
    int large = strstr(name, "_large") ? 20000 : 100, right = (rank + 1) % ranks, peer = 1 - rank;
    long long one = 1, two = 0;
    void *memory;
    MPI_Group all, group;
    MPI_Info info;
    int assert = strstr(name, "noprecede") ? MPI_MODE_NOPRECEDE : strstr(name, "nosucceed") ? MPI_MODE_NOSUCCEED : 0;
    if (strncmp(name, "Win_create", 10) && strncmp(name, "Win_allocate", 12) && window == MPI_WIN_NULL) return 1;
    if (!strcmp(name, "Win_create")) MPI_Win_create(shared, sizeof shared, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    else if (!strcmp(name, "Win_allocate")) MPI_Win_allocate(sizeof shared, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    else if (!strcmp(name, "Win_allocate_shared")) MPI_Win_allocate_shared(sizeof shared, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    else if (!strcmp(name, "Win_create_dynamic")) MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    else if (!strcmp(name, "Win_free")) MPI_Win_free(&window);
    else if (!strncmp(name, "Win_fence", 9)) MPI_Win_fence(assert, window);
    else if (!strcmp(name, "Put_ring")) MPI_Put(own, 100, MPI_BYTE, right, 0, 100, MPI_BYTE, window);
    else if (!strcmp(name, "Win_set_info")) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "no_locks", "true");
        MPI_Win_set_info(window, info);
        MPI_Info_free(&info);
    } else if (rank > 1 || (rank == 1 && strcmp(name, "Win_post") && strcmp(name, "Win_wait"))) {
        /* Takes no part. */
    } else if (!strcmp(name, "Win_post") || !strcmp(name, "Win_start")) {
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_incl(all, 1, &peer, &group);
        if (rank == 0) { if (!strcmp(name, "Win_start")) MPI_Win_start(group, 0, window); }
        else MPI_Win_post(group, 0, window);
        MPI_Group_free(&group), MPI_Group_free(&all);
    } else if (!strcmp(name, "Win_wait")) { if (rank == 1) MPI_Win_wait(window); }
    else if (!strcmp(name, "Win_complete")) MPI_Win_complete(window);
    else if (!strcmp(name, "Win_lock_all")) MPI_Win_lock_all(0, window);
    else if (!strncmp(name, "Win_lock", 8)) {
        MPI_Win_lock(strstr(name, "exclusive") ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 1, strstr(name, "nocheck") ? MPI_MODE_NOCHECK : 0, window);
    } else if (!strcmp(name, "Win_unlock")) MPI_Win_unlock(1, window);
    else if (!strcmp(name, "Win_unlock_all")) MPI_Win_unlock_all(window);
    else if (!strcmp(name, "Win_flush")) MPI_Win_flush(1, window);
    else if (!strcmp(name, "Win_flush_all")) MPI_Win_flush_all(window);
    else if (!strcmp(name, "Win_flush_local")) MPI_Win_flush_local(1, window);
    else if (!strncmp(name, "Put", 3)) MPI_Put(own, large, MPI_BYTE, 1, 0, large, MPI_BYTE, window);
    else if (!strncmp(name, "Get_a", 5)) MPI_Get_accumulate(own, 100, MPI_BYTE, shared, 100, MPI_BYTE, 1, 0, 100, MPI_BYTE, MPI_BOR, window);
    else if (!strncmp(name, "Get", 3)) MPI_Get(own, large, MPI_BYTE, 1, 0, large, MPI_BYTE, window);
    else if (!strncmp(name, "Acc", 3)) MPI_Accumulate(own, large, MPI_BYTE, 1, 0, large, MPI_BYTE, MPI_BOR, window);
    else if (!strcmp(name, "Fetch_and_op")) MPI_Fetch_and_op(&one, &two, MPI_LONG_LONG, 1, 0, MPI_SUM, window);
    else MPI_Compare_and_swap(&one, &two, &two, MPI_LONG_LONG, 1, 0, window);
    return window == MPI_WIN_NULL && strcmp(name, "Win_free");
}

static void create(const char *name)
{
    MPI_Comm w = MPI_COMM_WORLD, made, grid;
    MPI_Request request;
    MPI_Group group;
    MPI_Datatype every;
    int i, periodic = 1, remain = 1, sources[2], neighbours[2], weights[2] = { 1, 1 };
    sources[0] = neighbours[1] = (rank + ranks - 1) % ranks;
    sources[1] = neighbours[0] = (rank + 1) % ranks;
    if (!strcmp(name, "Comm_dup")) MPI_Comm_dup(w, &made);
    else if (!strcmp(name, "Intercomm_create")) {
        MPI_Intercomm_create(own_group, 0, w, rank < first_size ? first_size : 0, 1, &inter);
    } else if (!strcmp(name, "Intercomm_merge")) MPI_Intercomm_merge(inter, rank >= first_size, &made);
    else if (!strcmp(name, "Comm_dup_with_info")) MPI_Comm_dup_with_info(w, MPI_INFO_NULL, &made);
    else if (!strcmp(name, "Comm_idup")) {
        MPI_Comm_idup(w, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "Comm_split")) MPI_Comm_split(w, 0, rank, &made);
    else if (!strcmp(name, "Cart_create")) MPI_Cart_create(w, 1, &ranks, &periodic, 0, &made);
    else if (!strcmp(name, "Cart_sub")) {
        recording = 0;
        MPI_Cart_create(w, 1, &ranks, &periodic, 0, &grid);
        MPI_Barrier(w);
        recording = 1;
        MPI_Cart_sub(grid, &remain, &made);
    } else if (!strcmp(name, "Graph_create")) {
        for (i = 0; i < ranks; i++) ca[i] = i + 1, da[i] = (i + 1) % ranks;
        MPI_Graph_create(w, ranks, ca, da, 0, &made);
    } else if (!strcmp(name, "Dist_graph_create_adjacent")) {
        MPI_Dist_graph_create_adjacent(w, 2, sources, weights, 2, neighbours, weights, MPI_INFO_NULL, 0, &made);
    } else if (!strcmp(name, "Dist_graph_create")) {
        MPI_Dist_graph_create(w, 1, &rank, &remain, neighbours, weights, MPI_INFO_NULL, 0, &made);
    } else if (!strcmp(name, "Comm_split_type")) {
        MPI_Comm_split_type(w, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &made);
    } else if (!strcmp(name, "Comm_disconnect")) {
        recording = 0;
        MPI_Comm_dup(w, &made);
        MPI_Barrier(w);
        recording = 1;
        MPI_Comm_disconnect(&made);
    } else if (!strcmp(name, "File_open")) {
        MPI_File_open(w, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    } else if (!strcmp(name, "File_set_view")) {
        MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    } else if (!strcmp(name, "File_set_size")) {
        MPI_File_set_size(file, 1 << 16);
    } else if (!strcmp(name, "File_preallocate")) {
#ifdef OPEN_MPI
        /* Less than the file has: otherwise ranks of Open MPI 4 look whether the file is long enough while rank 0 extends it. Those that find
           it so take no part in the second broadcast, for which others may wait forever. */
        MPI_File_preallocate(file, 1 << 15);
#else
        MPI_File_preallocate(file, 1 << 16);
#endif
    } else if (!strcmp(name, "File_sync")) {
        MPI_File_sync(file);
    } else if (!strcmp(name, "File_seek_shared")) {
        MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    } else if (!strcmp(name, "File_write_at_all")) {
        MPI_File_write_at_all(file, 4 * rank, &rank, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "File_read_at_all")) {
        MPI_File_read_at_all(file, 4 * rank, &i, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "File_write_ordered")) {
        MPI_File_write_ordered(file, &rank, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "File_write_at_all_begin")) {
        MPI_File_write_at_all_begin(file, 4 * rank, accessed, 4, MPI_BYTE);
    } else if (!strcmp(name, "File_write_at_all_end")) {
        MPI_File_write_at_all_end(file, accessed, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "File_write_ordered_begin")) {
        MPI_File_write_ordered_begin(file, accessed, 4, MPI_BYTE);
    } else if (!strcmp(name, "File_write_ordered_end")) {
        MPI_File_write_ordered_end(file, accessed, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "File_set_atomicity")) {
        MPI_File_set_atomicity(file, 0);
    } else if (!strcmp(name, "File_set_info")) {
        MPI_File_set_info(file, MPI_INFO_NULL);
    } else if (!strcmp(name, "Turned_write")) {
        MPI_File_write_at_all(file, 1000 * (ranks - 1 - rank), accessed, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "Turned_read")) {
        MPI_File_read_at_all(file, 1000 * (ranks - 1 - rank), accessed, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "Far_write")) {
        MPI_File_write_at_all(file, (MPI_Offset)sizeof accessed * (ranks - 1 - rank), accessed, sizeof accessed, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "View_write")) {
        MPI_Type_vector(3, 1000, ranks * 1000, MPI_BYTE, &every);
        MPI_Type_commit(&every);
        MPI_File_set_view(file, 1000 * rank, MPI_BYTE, every, "native", MPI_INFO_NULL);
        MPI_File_write_at_all(file, 0, accessed, 3000, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "View_read")) {
        MPI_File_read_at_all(file, 0, accessed, 3000, MPI_BYTE, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "File_close")) {
        MPI_File_close(&file);
    } else {
        MPI_Comm_group(w, &group);
        if (!strcmp(name, "Comm_create")) MPI_Comm_create(w, group, &made);
        else MPI_Comm_create_group(w, group, 1, &made);
    }
}

/* Between two groups: the sizes of the own and of the other group, and a rank's own number. */
static int own_size, other_size, own_rank;

/* root: a rank of MPI_COMM_WORLD */
static void call_between(const char *op, int n, int root)
{
    int low = rank < first_size, root_low = root < first_size, i, total = 0;
    int r = low == root_low ? (rank == root ? MPI_ROOT : MPI_PROC_NULL) : root - (root_low ? 0 : first_size);
    MPI_Comm w = inter;
    MPI_Request q = MPI_REQUEST_NULL;
    for (i = 0; i < other_size; i++) {
        ca[i] = cb[i] = count_of(i, n);
        da[i] = db[i] = i ? da[i - 1] + ca[i - 1] : 0;
        types[i] = MPI_BYTE;
    }
    if (!strcmp(op, "bcast")) MPI_Bcast(out, n, MPI_BYTE, r, w);
    else if (!strcmp(op, "Ibcast")) MPI_Ibcast(out, n, MPI_BYTE, r, w, &q);
    else if (!strcmp(op, "reduce")) MPI_Reduce(in, out, n, MPI_BYTE, MPI_BOR, r, w);
    else if (!strcmp(op, "Ireduce")) MPI_Ireduce(in, out, n, MPI_BYTE, MPI_BOR, r, w, &q);
    else if (!strcmp(op, "allreduce")) MPI_Allreduce(in, out, n, MPI_BYTE, MPI_BOR, w);
    else if (!strcmp(op, "Iallreduce")) MPI_Iallreduce(in, out, n, MPI_BYTE, MPI_BOR, w, &q);
    else if (!strcmp(op, "gather")) MPI_Gather(in, n, MPI_BYTE, out, n, MPI_BYTE, r, w);
    else if (!strcmp(op, "Igather")) MPI_Igather(in, n, MPI_BYTE, out, n, MPI_BYTE, r, w, &q);
    else if (!strcmp(op, "scatter")) MPI_Scatter(in, n, MPI_BYTE, out, n, MPI_BYTE, r, w);
    else if (!strcmp(op, "Iscatter")) MPI_Iscatter(in, n, MPI_BYTE, out, n, MPI_BYTE, r, w, &q);
    else if (!strcmp(op, "allgather")) MPI_Allgather(in, low ? n : 2 * n, MPI_BYTE, out, low ? 2 * n : n, MPI_BYTE, w);
    else if (!strcmp(op, "Iallgather")) MPI_Iallgather(in, low ? n : 2 * n, MPI_BYTE, out, low ? 2 * n : n, MPI_BYTE, w, &q);
    else if (!strcmp(op, "barrier")) MPI_Barrier(w);
    else if (!strcmp(op, "Ibarrier")) MPI_Ibarrier(w, &q);
    else if (!strcmp(op, "alltoall")) MPI_Alltoall(in, low ? n : 2 * n, MPI_BYTE, out, low ? 2 * n : n, MPI_BYTE, w);
    else if (!strcmp(op, "Ialltoall")) MPI_Ialltoall(in, low ? n : 2 * n, MPI_BYTE, out, low ? 2 * n : n, MPI_BYTE, w, &q);
    else if (!strcmp(op, "gatherv")) MPI_Gatherv(in, count_of(own_rank, n), MPI_BYTE, out, ca, da, MPI_BYTE, r, w);
    else if (!strcmp(op, "Igatherv")) MPI_Igatherv(in, count_of(own_rank, n), MPI_BYTE, out, ca, da, MPI_BYTE, r, w, &q);
    else if (!strcmp(op, "scatterv")) MPI_Scatterv(in, ca, da, MPI_BYTE, out, count_of(own_rank, n), MPI_BYTE, r, w);
    else if (!strcmp(op, "Iscatterv")) MPI_Iscatterv(in, ca, da, MPI_BYTE, out, count_of(own_rank, n), MPI_BYTE, r, w, &q);
    else if (!strcmp(op, "allgatherv")) MPI_Allgatherv(in, count_of(own_rank, n), MPI_BYTE, out, ca, da, MPI_BYTE, w);
    else if (!strcmp(op, "Iallgatherv")) MPI_Iallgatherv(in, count_of(own_rank, n), MPI_BYTE, out, ca, da, MPI_BYTE, w, &q);
    else if (strstr(op, "educe-scatter")) {
        /* Blocks of the own group; both groups have the same sum. */
        int block = strstr(op, "block") != NULL;
        for (i = 0; i < own_size; i++) ca[i] = block ? n * other_size : count_of(i, n), total += ca[i];
        if (!block) ca[own_size - 1] += n * own_size * other_size - total;
        if (block) op[0] == 'I' ? MPI_Ireduce_scatter_block(in, out, n * other_size, MPI_BYTE, MPI_BOR, w, &q) : MPI_Reduce_scatter_block(in, out, n * other_size, MPI_BYTE, MPI_BOR, w);
        else op[0] == 'I' ? MPI_Ireduce_scatter(in, out, ca, MPI_BYTE, MPI_BOR, w, &q) : MPI_Reduce_scatter(in, out, ca, MPI_BYTE, MPI_BOR, w);
    } else {
        for (i = 0; i < other_size; i++) {
            ca[i] = cb[i] = count_of(i + own_rank, n);
            da[i] = db[i] = i ? da[i - 1] + ca[i - 1] : 0;
        }
        if (!strcmp(op, "alltoallv")) MPI_Alltoallv(in, ca, da, MPI_BYTE, out, cb, db, MPI_BYTE, w);
        else if (!strcmp(op, "Ialltoallv")) MPI_Ialltoallv(in, ca, da, MPI_BYTE, out, cb, db, MPI_BYTE, w, &q);
        else if (!strcmp(op, "alltoallw")) MPI_Alltoallw(in, ca, da, types, out, cb, db, types, w);
        else MPI_Ialltoallw(in, ca, da, types, out, cb, db, types, w, &q);
    }
    MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static int is_of_vector(const char *op)
{
    return !strcmp(op, "bcast") || !strcmp(op, "reduce") || !strcmp(op, "allreduce") || !strcmp(op, "scan") || !strcmp(op, "exscan");
}

static void report(const char *op, int n, int root, const long long *all, int pairs)
{
    unsigned long long digest = 0xcbf29ce484222325ull;
    long long messages = 0, bytes = 0;
    char pair[80], *c;
    int k, all_pairs = ranks * ranks;
    for (k = 0; k < all_pairs; k++) {
        if (!all[2 * k]) continue;
        messages += all[2 * k];
        bytes += all[2 * k + 1];
        sprintf(pair, "%d:%d:%lld:%lld ", k / ranks, k % ranks, all[2 * k], all[2 * k + 1]);
        for (c = pair; *c; c++) digest = (digest ^ (unsigned char)*c) * 0x100000001b3ull;
    }
    printf("%s %d %d %d %lld %lld %llu", op, n, ranks, root, messages, bytes, digest);
    for (k = 0; k < all_pairs && pairs; k++)
        if (all[2 * k]) printf(" %d:%d:%lld:%lld", k / ranks, k % ranks, all[2 * k], all[2 * k + 1]);
#ifndef OPEN_MPI
    if (pairs) fputs(by_ucx, stdout);
    by_ucx[0] = 0;
#endif
    printf("\n");
    fflush(stdout);
}

/* Records a collective, of two groups if there are some, or a creation if `root` is negative. */
static void record(const char *op, int n, int root, int pairs)
{
    long long *all = calloc(2 * ranks * ranks, sizeof *all);
    int missing = 0;
    memset(sent, 0, 2 * ranks * sizeof *sent);
    /* A target may answer before it leaves the first barrier. */
    if (quiet != MPI_COMM_NULL) recording = 1, MPI_Barrier(quiet);
    else MPI_Barrier(MPI_COMM_WORLD);
    recording = 1;
    if (quiet != MPI_COMM_NULL) missing = step(op), MPI_Barrier(quiet);
    else if (root < 0) create(op);
    else if (first_size) call_between(op, n, root);
    else call(op, n, root);
    recording = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Gather(sent, 2 * ranks, MPI_LONG_LONG, all, 2 * ranks, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0 && !missing) report(op, n, root < 0 ? 0 : root, all, pairs);
    free(all);
}

int main(int argc, char **argv)
{
    static const char *ops[] = { "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "barrier",
        "alltoall", "gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw", "reduce-scatter",
        "reduce-scatter-block", "scan", "exscan" };
    static const int sizes[] = { 0, 1, 8, 20, 100, 400, 1500, 6000, 25000, 70000, 150000, 600000, 1200000, 2200000 };
    size_t most;
    int o, s, largest, largest_block;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    world_group = MPI_GROUP_NULL;
    quiet = MPI_COMM_NULL;
    largest = argc > 1 && strcmp(argv[1], "between") ? atoi(argv[1]) : 600000;
    largest_block = argc > 2 && strcmp(argv[1], "between") ? atoi(argv[2]) : largest;
    most = (size_t)ranks * 4 * largest_block + largest + 1;
    in = calloc(most, 1); out = calloc(most, 1);
    ca = calloc(ranks, sizeof(int)); da = calloc(ranks, sizeof(int));
    cb = calloc(ranks, sizeof(int)); db = calloc(ranks, sizeof(int));
    types = calloc(ranks, sizeof *types);
    sent = calloc(2 * ranks, sizeof *sent);
    hook();
    if (argc > 1 && !strcmp(argv[1], "creations")) {
        snprintf(file_name, sizeof file_name, "%s.tmp", argv[0]);
        for (o = 0; o < (int)(sizeof creations / sizeof *creations); o++) record(creations[o], 0, -1, 0);
        MPI_Finalize();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "windows")) {
        MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        /* With the first window of Open MPI's ucx, ranks exchange their addresses. */
        step("Win_create_dynamic"), step("Win_free");
        for (o = 0; o < (int)(sizeof steps / sizeof *steps); o++) record(steps[o], 0, -1, 1);
        MPI_Finalize();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "phases")) {
        snprintf(file_name, sizeof file_name, "%s.tmp", argv[0]);
        create("File_open");
        for (phases = 1, o = 0; o < (int)(sizeof accesses / sizeof *accesses); o++) record(accesses[o], 0, -1, 1);
        MPI_Finalize();
        return 0;
    }
    if (argc > 2 && !strcmp(argv[1], "between")) {
        static const int some[] = { 0, 8, 400, 1500, 6000, 150000 };
        char name[64];
        MPI_Comm half;
        first_size = atoi(argv[2]);
        MPI_Comm_split(MPI_COMM_WORLD, rank < first_size, rank, &half);
        MPI_Comm_group(MPI_COMM_WORLD, &world_group);
        own_group = half;
        record("Intercomm_create", 0, -1, argc > 3);
        MPI_Comm_size(inter, &own_size), MPI_Comm_remote_size(inter, &other_size), MPI_Comm_rank(inter, &own_rank);
        record("Intercomm_merge", 0, -1, argc > 3);
        for (o = 0; o < 2 * 15; o++)
            for (s = 0; s < (int)(sizeof some / sizeof *some); s++)
                for (int root = 0; root < ranks; root += ranks > 2 ? ranks - 2 : 1) {
                    if (strstr(ops[o % 15], "barrier") && s + root > 0) continue;
                    snprintf(name, sizeof name, "%s%s", o < 15 ? "" : "I", ops[o % 15]);
                    record(name, some[s], root, argc > 3);
                }
        MPI_Finalize();
        return 0;
    }
    for (o = 0; o < (int)(sizeof ops / sizeof *ops); o++)
        for (s = 0; s < (int)(sizeof sizes / sizeof *sizes); s++) {
            int n = sizes[s], root = s % ranks;
            if (!strcmp(ops[o], "barrier") ? s > 0 : n > (is_of_vector(ops[o]) ? largest : largest_block)) continue;
            record(ops[o], n, root, argc > 3);
        }
    MPI_Finalize();
    return 0;
}
