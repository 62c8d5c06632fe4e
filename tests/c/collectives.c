/* Collectives of all kinds whose results are checked element by element against what MPI defines: odd counts, derived datatypes, MPI_IN_PLACE,
 * operations that do not commute, communicators of several sizes that are made and freed, inter-communicators, messages of the program's own
 * with wildcards in between, and what the standard lets a program rely on (gaps untouched, arguments that are not significant).
 *
 *     collectives [threads|without]
 *
 * `without`: without what MPICH 4.0.2 itself gets wrong: MPI_Reduce_scatter_block in place by an operation that does not commute.
 *
 * Prints "collectives: N checks" at rank 0, or says what is wrong and aborts. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long checks;
static int without;

static void wrong(const char *what, long index, double found, double expected) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "WRONG %s: rank %d, element %ld is %g, not %g\n", what, rank, index, found, expected);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void expect(const char *what, long index, double found, double expected) {
    __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);
    if (found != expected) wrong(what, index, found, expected);
}

static int value(int rank, int index) { return (rank * 7 + index * 3) % 101 + 1; }

/* Pairs (a, b) for the map x -> a x + b modulo a prime: composing them is associative and does not commute. */
typedef struct { int a, b; } Map;
#define PRIME 9973
static Map then(Map first, Map second) {
    Map both = {(int)((long)first.a * second.a % PRIME), (int)(((long)first.b * second.a + second.b) % PRIME)};
    return both;
}
static Map map_of(int rank, int index) {
    Map map = {rank % 89 + 2, (rank * 31 + index) % 83 + 1};
    return map;
}
static void compose(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    Map *low = in, *high = inout;
    for (int i = 0; i < *count; i++) high[i] = then(low[i], high[i]);
}

/* The same with a gap behind each pair, for a derived datatype with an extent beyond its data. */
typedef struct { Map map; int gap; } Spaced;
static void compose_spaced(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    Spaced *low = in, *high = inout;
    for (int i = 0; i < *count; i++) high[i].map = then(low[i].map, high[i].map);
}

static Map composed(int from, int to, int index) {
    Map all = map_of(from, index);
    for (int rank = from + 1; rank < to; rank++) all = then(all, map_of(rank, index));
    return all;
}
static void expect_map(const char *what, long index, Map found, Map expected) {
    expect(what, 2 * index, found.a, expected.a);
    expect(what, 2 * index + 1, found.b, expected.b);
}

static void reductions(MPI_Comm comm, int count) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Op op, spaced_op;
    MPI_Op_create(compose, 0, &op);
    MPI_Op_create(compose_spaced, 0, &spaced_op);
    MPI_Datatype pair, spaced, resized;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_contiguous(2, MPI_INT, &spaced);
    MPI_Type_create_resized(spaced, 0, sizeof(Spaced), &resized);
    MPI_Type_commit(&resized);
    int n = count * ranks;
    Map *mine = malloc((n + 1) * sizeof *mine), *got = malloc((n + 1) * sizeof *got);
    Spaced *sparse = malloc((n + 1) * sizeof *sparse), *full = malloc((n + 1) * sizeof *full);
    double *numbers = malloc((n + 1) * sizeof *numbers), *sums = malloc((n + 1) * sizeof *sums);
    for (int i = 0; i < n; i++) {
        mine[i] = map_of(rank, i);
        numbers[i] = value(rank, i);
        sparse[i].map = mine[i];
        sparse[i].gap = -5;
    }
#define SUM(index, from, to) ({ double s = 0; for (int r = from; r < to; r++) s += value(r, index); s; })
    for (int root = 0; root < ranks; root += 1 + ranks / 3) {
        memset(got, 0, n * sizeof *got);
        /* Elsewhere than at the root the receive buffer is not significant. */
        MPI_Reduce(mine, rank == root ? got : (void *)16, count, pair, op, root, comm);
        for (int i = 0; rank == root && i < count; i++) expect_map("reduce", i, got[i], composed(0, ranks, i));
        memcpy(sums, numbers, n * sizeof *sums);
        MPI_Reduce(rank == root ? MPI_IN_PLACE : sums, sums, count, MPI_DOUBLE, MPI_SUM, root, comm);
        for (int i = 0; i < count; i++) expect("reduce in place", i, sums[i], rank == root ? SUM(i, 0, ranks) : numbers[i]);
        for (int i = 0; i < n; i++) full[i] = (Spaced){{0, 0}, 77};
        MPI_Reduce(sparse, full, count, resized, spaced_op, root, comm);
        for (int i = 0; rank == root && i < count; i++) {
            expect_map("reduce spaced", i, full[i].map, composed(0, ranks, i));
            expect("reduce gap", i, full[i].gap, 77);
        }
    }
    MPI_Allreduce(mine, got, count, pair, op, comm);
    for (int i = 0; i < count; i++) expect_map("allreduce", i, got[i], composed(0, ranks, i));
    memcpy(sums, numbers, n * sizeof *sums);
    MPI_Allreduce(MPI_IN_PLACE, sums, count, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < count; i++) expect("allreduce in place", i, sums[i], SUM(i, 0, ranks));
    for (int i = 0; i < n; i++) full[i] = (Spaced){{0, 0}, 77};
    MPI_Allreduce(sparse, full, count, resized, spaced_op, comm);
    for (int i = 0; i < count; i++) {
        expect_map("allreduce spaced", i, full[i].map, composed(0, ranks, i));
        expect("allreduce gap", i, full[i].gap, 77);
    }
    struct { double number; int where; } low[3], lowest[3];
    for (int i = 0; i < 3; i++) low[i].number = (rank * 5 + i * 7) % 11, low[i].where = rank;
    MPI_Allreduce(low, lowest, 3, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    for (int i = 0; i < 3; i++) {
        int best = 0;
        for (int r = 1; r < ranks; r++)
            if ((r * 5 + i * 7) % 11 < (best * 5 + i * 7) % 11) best = r;
        expect("minloc", i, lowest[i].where, best);
    }
    MPI_Scan(mine, got, count, pair, op, comm);
    for (int i = 0; i < count; i++) expect_map("scan", i, got[i], composed(0, rank + 1, i));
    memcpy(got, mine, n * sizeof *got);
    MPI_Scan(MPI_IN_PLACE, got, count, pair, op, comm);
    for (int i = 0; i < count; i++) expect_map("scan in place", i, got[i], composed(0, rank + 1, i));
    MPI_Exscan(mine, rank ? got : (void *)16, count, pair, op, comm);
    for (int i = 0; rank && i < count; i++) expect_map("exscan", i, got[i], composed(0, rank, i));
    for (int i = 0; i < n; i++) full[i] = sparse[i];
    MPI_Exscan(MPI_IN_PLACE, full, count, resized, spaced_op, comm);
    for (int i = 0; rank && i < count; i++) {
        expect_map("exscan in place", i, full[i].map, composed(0, rank, i));
        expect("exscan gap", i, full[i].gap, -5);
    }
    MPI_Reduce_scatter_block(mine, got, count, pair, op, comm);
    for (int i = 0; i < count; i++) expect_map("reduce_scatter_block", i, got[i], composed(0, ranks, rank * count + i));
    MPI_Reduce_scatter_block(numbers, sums, count, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < count; i++) expect("reduce_scatter_block of sums", i, sums[i], SUM(rank * count + i, 0, ranks));
    int *counts = malloc(ranks * sizeof *counts), before = 0, all = 0;
    for (int r = 0; r < ranks; r++) {
        counts[r] = r % 3 * count / 2;
        if (r < rank) before += counts[r];
        all += counts[r];
    }
    MPI_Reduce_scatter(numbers, sums, counts, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < counts[rank]; i++) expect("reduce_scatter", i, sums[i], SUM(before + i, 0, ranks));
    memcpy(got, mine, n * sizeof *got);
    MPI_Reduce_scatter(MPI_IN_PLACE, got, counts, pair, op, comm);
    for (int i = 0; i < counts[rank]; i++) expect_map("reduce_scatter in place", i, got[i], composed(0, ranks, before + i));
    for (int i = 0; i < n; i++) full[i] = sparse[i];
    if (without) goto done;
    MPI_Reduce_scatter_block(MPI_IN_PLACE, full, count, resized, spaced_op, comm);
    for (int i = 0; i < count; i++) {
        expect_map("reduce_scatter_block in place", i, full[i].map, composed(0, ranks, rank * count + i));
        expect("reduce_scatter_block gap", i, full[i].gap, -5);
    }
done:
    free(counts), free(mine), free(got), free(sparse), free(full), free(numbers), free(sums);
    MPI_Type_free(&pair), MPI_Type_free(&spaced), MPI_Type_free(&resized);
    MPI_Op_free(&op), MPI_Op_free(&spaced_op);
}

/* Two ints of which the second lies first in memory: as large as its extent, and yet not in order. */
static MPI_Datatype swapped(void) {
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {sizeof(int), 0};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT}, made;
    MPI_Type_create_struct(2, lengths, places, types, &made);
    MPI_Type_commit(&made);
    return made;
}

static void movements(MPI_Comm comm, int count) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Datatype every_other, strided, pairs = swapped();
    MPI_Type_vector(1, 1, 2, MPI_INT, &every_other);
    MPI_Type_create_resized(every_other, 0, 2 * sizeof(int), &strided);
    MPI_Type_commit(&strided);
    int n = 2 * count * ranks + 2;
    int *data = malloc(n * sizeof *data), *got = malloc(n * sizeof *got), *wide = malloc(2 * n * sizeof *wide);
#define CLEAR() do { for (int i = 0; i < n; i++) got[i] = -1; for (int i = 0; i < 2 * n; i++) wide[i] = -1; } while (0)
    for (int i = 0; i < n; i++) data[i] = value(rank, i);
    for (int root = 0; root < ranks; root += 1 + ranks / 3) {
        CLEAR();
        /* Equal signatures of unlike datatypes: the root's ints, the others' every other int, or pairs in another order. */
        if (rank == root) MPI_Bcast(data, 2 * count, MPI_INT, root, comm);
        else if (rank % 2) MPI_Bcast(wide, 2 * count, strided, root, comm);
        else MPI_Bcast(got, count, pairs, root, comm);
        for (int i = 0; rank != root && i < 2 * count; i++) {
            if (rank % 2) {
                expect("bcast strided", i, wide[2 * i], value(root, i));
                expect("bcast gap", i, wide[2 * i + 1], -1);
            } else expect("bcast swapped", i, got[i], value(root, i ^ 1));
        }
        CLEAR();
        MPI_Gather(data, count, MPI_INT, rank == root ? wide : NULL, rank == root ? count : -1, rank == root ? strided : MPI_DATATYPE_NULL, root, comm);
        for (int i = 0; rank == root && i < count * ranks; i++) {
            expect("gather", i, wide[2 * i], value(i / count, i % count));
            expect("gather gap", i, wide[2 * i + 1], -1);
        }
        CLEAR();
        memcpy(got + rank * count, data, count * sizeof *got);
        MPI_Gather(rank == root ? MPI_IN_PLACE : data, count, MPI_INT, got, count, MPI_INT, root, comm);
        for (int i = 0; rank == root && i < count * ranks; i++) expect("gather in place", i, got[i], value(i / count, i % count));
        CLEAR();
        MPI_Scatter(data, count, MPI_INT, got, count, MPI_INT, root, comm);
        for (int i = 0; i < count; i++) expect("scatter", i, got[i], value(root, rank * count + i));
        expect("scatter end", count, got[count], -1);
        CLEAR();
        MPI_Scatter(data, count, MPI_INT, rank == root ? MPI_IN_PLACE : (void *)wide, count, strided, root, comm);
        for (int i = 0; rank != root && i < count; i++) expect("scatter in place", i, wide[2 * i], value(root, rank * count + i));
        /* Unequal blocks, some empty, in the reverse order of memory with holes between them. */
        int *counts = malloc(ranks * sizeof *counts), *displs = malloc(ranks * sizeof *displs);
        for (int r = 0; r < ranks; r++) counts[r] = (r + root) % 3 * count / 2, displs[r] = (ranks - 1 - r) * (count + 1);
        CLEAR();
        MPI_Gatherv(data, counts[rank], MPI_INT, got, rank == root ? counts : NULL, rank == root ? displs : NULL, MPI_INT, root, comm);
        for (int r = 0; rank == root && r < ranks; r++)
            for (int i = 0; i <= count; i++) expect("gatherv", r * count + i, got[displs[r] + i], i < counts[r] ? value(r, i) : -1);
        CLEAR();
        if (rank == root) MPI_Gatherv(MPI_IN_PLACE, 0, MPI_INT, wide, counts, displs, strided, root, comm);
        else MPI_Gatherv(data, counts[rank], MPI_INT, NULL, NULL, NULL, MPI_INT, root, comm);
        for (int r = 0; rank == root && r < ranks; r++)
            for (int i = 0; i < counts[r]; i++) expect("gatherv in place", i, wide[2 * (displs[r] + i)], r == root ? -1 : value(r, i));
        CLEAR();
        MPI_Scatterv(data, rank == root ? counts : NULL, rank == root ? displs : NULL, MPI_INT, got, counts[rank], MPI_INT, root, comm);
        for (int i = 0; i <= counts[rank]; i++) expect("scatterv", i, got[i], i < counts[rank] ? value(root, displs[rank] + i) : -1);
        CLEAR();
        if (rank == root) MPI_Scatterv(data, counts, displs, MPI_INT, MPI_IN_PLACE, 0, MPI_INT, root, comm);
        else MPI_Scatterv(NULL, NULL, NULL, MPI_INT, wide, counts[rank], strided, root, comm);
        for (int i = 0; rank != root && i < counts[rank]; i++) expect("scatterv strided", i, wide[2 * i], value(root, displs[rank] + i));
        free(counts), free(displs);
    }
    CLEAR();
    MPI_Allgather(data, count, MPI_INT, wide, count, strided, comm);
    for (int i = 0; i < count * ranks; i++) {
        expect("allgather", i, wide[2 * i], value(i / count, i % count));
        expect("allgather gap", i, wide[2 * i + 1], -1);
    }
    CLEAR();
    memcpy(got + rank * count, data, count * sizeof *got);
    MPI_Allgather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, got, count, MPI_INT, comm);
    for (int i = 0; i < count * ranks; i++) expect("allgather in place", i, got[i], value(i / count, i % count));
    int *counts = malloc(ranks * sizeof *counts), *displs = malloc(ranks * sizeof *displs);
    for (int r = 0; r < ranks; r++) counts[r] = (r + 1) % 3 * count / 2, displs[r] = (ranks - 1 - r) * (count + 1);
    CLEAR();
    MPI_Allgatherv(data, counts[rank], MPI_INT, got, counts, displs, MPI_INT, comm);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i <= count; i++) expect("allgatherv", i, got[displs[r] + i], i < counts[r] ? value(r, i) : -1);
    CLEAR();
    memcpy(got + displs[rank], data, counts[rank] * sizeof *got);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, got, counts, displs, MPI_INT, comm);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i <= count; i++) expect("allgatherv in place", i, got[displs[r] + i], i < counts[r] ? value(r, i) : -1);
    CLEAR();
    MPI_Alltoall(data, count, MPI_INT, wide, count, strided, comm);
    for (int i = 0; i < count * ranks; i++) expect("alltoall", i, wide[2 * i], value(i / count, rank * count + i % count));
    memcpy(got, data, n * sizeof *got);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, got, count, MPI_INT, comm);
    for (int i = 0; i < count * ranks; i++) expect("alltoall in place", i, got[i], value(i / count, rank * count + i % count));
    /* Rank a sends (a + 2 b) mod 3 halves of `count` to rank b. */
#define PART(a, b) (((a) + 2 * (b)) % 3 * count / 2)
    int *sends = malloc(ranks * sizeof *sends), *gets = malloc(ranks * sizeof *gets), *from = malloc(ranks * sizeof *from);
    for (int r = 0; r < ranks; r++) sends[r] = PART(rank, r), gets[r] = PART(r, rank), from[r] = r * count, displs[r] = (ranks - 1 - r) * (count + 1);
    CLEAR();
    MPI_Alltoallv(data, sends, from, MPI_INT, got, gets, displs, MPI_INT, comm);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i <= count; i++) expect("alltoallv", i, got[displs[r] + i], i < gets[r] ? value(r, rank * count + i) : -1);
    MPI_Datatype *out = malloc(ranks * sizeof *out), *in = malloc(ranks * sizeof *in);
    for (int r = 0; r < ranks; r++) {
        out[r] = sends[r] ? MPI_INT : MPI_DATATYPE_NULL, in[r] = r % 2 ? strided : MPI_INT;
        from[r] *= sizeof(int), displs[r] = r * 2 * (count + 1) * sizeof(int);
        if (!gets[r]) in[r] = MPI_INT;
        if (!sends[r]) out[r] = MPI_INT;
    }
    CLEAR();
    MPI_Alltoallw(data, sends, from, out, wide, gets, displs, in, comm);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < gets[r]; i++)
            expect("alltoallw", i, wide[r * 2 * (count + 1) + (r % 2 ? 2 * i : i)], value(r, rank * count + i));
    free(counts), free(displs), free(sends), free(gets), free(from), free(out), free(in);
    free(data), free(got), free(wide);
    MPI_Type_free(&strided), MPI_Type_free(&every_other), MPI_Type_free(&pairs);
}

/* The program's own messages, received with wildcards, are on the way while collectives run: a collective's message must never meet them. */
static void among_messages(MPI_Comm comm) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int mine = 1000 + rank, theirs = -1, sum = 0;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Irecv(&theirs, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect("sum among messages", 0, sum, ranks * (ranks - 1) / 2.0);
    int flag;
    MPI_Test(&requests[0], &flag, &status);
    expect("nothing was sent", 0, flag, 0);
    MPI_Barrier(comm);
    MPI_Isend(&mine, 1, MPI_INT, (rank + 1) % ranks, 0, comm, &requests[1]);
    MPI_Barrier(comm);
    MPI_Bcast(&sum, 1, MPI_INT, ranks - 1, comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect("message", 0, theirs, 1000 + (rank + ranks - 1) % ranks);
}

/* An attribute that counts how often a communicator with it is duplicated. */
static int duplicated;
static int count_copies(MPI_Comm comm, int key, void *extra, void *from, void *to, int *flag) {
    duplicated++;
    *flag = 1;
    *(void **)to = from;
    return MPI_SUCCESS;
}

static void between_groups(void) {
    int rank, ranks, got = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2) return;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter);
    int sum = 0, expected = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    for (int r = 1 - rank % 2; r < ranks; r += 2) expected += r;
    expect("inter-communicator", 0, sum, expected);
    got = rank;
    MPI_Bcast(&got, 1, MPI_INT, rank % 2 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    expect("inter bcast", 0, got, rank % 2 ? 0 : rank);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* Two arrays by their absolute addresses. */
static void absolute(MPI_Comm comm) {
    static int first[3], second[4];
    int rank, ranks, lengths[2] = {3, 4}, got[7 * 16], *at[2] = {first, second};
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Aint places[2];
    MPI_Datatype both;
    for (int i = 0; i < 2; i++) MPI_Get_address(at[i], &places[i]);
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &both);
    MPI_Type_commit(&both);
    for (int root = 0; root < ranks; root++) {
        for (int i = 0; i < 7; i++) *(i < 3 ? first + i : second + i - 3) = value(rank, i);
        MPI_Gather(MPI_BOTTOM, 1, both, got, 7, MPI_INT, root, comm);
        for (int i = 0; i < 7 * ranks && rank == root; i++) expect("gather of addresses", i, got[i], value(i / 7, i % 7));
        MPI_Bcast(MPI_BOTTOM, 1, both, root, comm);
        for (int i = 0; i < 7; i++) expect("bcast of addresses", i, i < 3 ? first[i] : second[i - 3], value(root, i));
        for (int i = 0; i < 7; i++) *(i < 3 ? first + i : second + i - 3) = value(rank, i);
        MPI_Allgather(MPI_BOTTOM, 1, both, got, 7, MPI_INT, comm);
        for (int i = 0; i < 7 * ranks; i++) expect("allgather of addresses", i, got[i], value(i / 7, i % 7));
        MPI_Scatter(got, 7, MPI_INT, MPI_BOTTOM, 1, both, root, comm);
        for (int i = 0; i < 7; i++) expect("scatter of addresses", i, i < 3 ? first[i] : second[i - 3], value(rank, i));
    }
    MPI_Type_free(&both);
}

static int handled;
static void handle(MPI_Comm *comm, int *code, ...) { handled++; }

/* A message that is too long for its place is an error of the program's communicator; a wrong argument is one, too. */
static void errors(void) {
    MPI_Comm comm;
    MPI_Errhandler handler;
    int rank, class, data[4] = {0};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    int code = MPI_Bcast(data, -1, MPI_INT, 0, comm);
    MPI_Error_class(code, &class);
    expect("negative count", 0, class, MPI_ERR_COUNT);
    expect("handler", 0, handled, 1);
    code = MPI_Bcast(data, 1, MPI_INT, 1 << 20, comm);
    MPI_Error_class(code, &class);
    expect("no such root", 0, class, MPI_ERR_ROOT);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

static void *in_thread(void *comm) {
    for (int i = 0; i < 20; i++) {
        movements(*(MPI_Comm *)comm, 3);
        reductions(*(MPI_Comm *)comm, 2);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int level, rank, ranks;
    int threaded = argc > 1 && !strcmp(argv[1], "threads");
    without = argc > 1 && !threaded;
    MPI_Init_thread(&argc, &argv, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (threaded) {
        if (level < MPI_THREAD_MULTIPLE) {
            if (rank == 0) printf("no threads\n");
            MPI_Finalize();
            return 0;
        }
        MPI_Comm comms[3];
        pthread_t threads[3];
        for (int i = 0; i < 3; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, in_thread, &comms[i]);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < 3; i++) MPI_Comm_free(&comms[i]);
    } else {
        for (int i = 0; i < 5; i++) {
            int count = (int[]){1, 2, 7, 129, 2501}[i];
            movements(MPI_COMM_WORLD, count);
            reductions(MPI_COMM_WORLD, count);
        }
        among_messages(MPI_COMM_WORLD);
        between_groups();
        absolute(MPI_COMM_WORLD);
        errors();
        /* Communicators of every size, in another order of ranks, made and freed many times: handles are used again. */
        for (int round = 0; round < 30; round++) {
            int size = round % ranks + 1;
            MPI_Comm some;
            MPI_Comm_split(MPI_COMM_WORLD, rank < size ? 0 : MPI_UNDEFINED, -rank, &some);
            if (some == MPI_COMM_NULL) continue;
            int key;
            MPI_Comm_create_keyval(count_copies, MPI_COMM_NULL_DELETE_FN, &key, NULL);
            MPI_Comm_set_attr(some, key, &key);
            movements(some, round % 5 + 1);
            reductions(some, round % 4 + 1);
            among_messages(some);
            MPI_Comm_free_keyval(&key);
            if (round % 2) MPI_Comm_free(&some);
            else MPI_Comm_disconnect(&some);
        }
        expect("copied attributes", 0, duplicated, 0);
        movements(MPI_COMM_SELF, 4);
        reductions(MPI_COMM_SELF, 4);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("collectives: %ld checks\n", checks);
    MPI_Finalize();
    return 0;
}
