/* Of random.c: files. Each rank knows what all ranks do, hence what must pass between it and a single storage server, and between members that gather
 * their bytes in two phases. */

enum { SEGMENTS = 3, MOST_MEMBERS = 8, FILE_BYTES = 1 << 16 };

/* A view: a rank has the bytes of so many segments of each tile. Tiles of a contiguous view have one etype. */
typedef struct {
    int has_gaps, unit, tile, extent, segments, at[SEGMENTS], length[SEGMENTS];
    long displacement;
} view;

typedef struct {
    MPI_File handle;
    MPI_Comm comm;
    int rank, size, kind;
    long positions[MOST_MEMBERS]; /* of each rank, in bytes of data */
} open_file;

/* An access of one rank: where in the file, as ROMIO has it, and bytes. An empty one ends in front of its begin. */
typedef struct {
    long first, last, bytes;
} part;

static const char *directory;

/* Bytes to and from the storage server. */
static long served[2];

/* Tiles that are at least an integer. */
static int unit_of(const view *v)
{
    return v->unit == 1 && !v->has_gaps ? 4 : 1;
}

/* What a rank of a communicator of so many sees by each kind of view; the types, too, if `types` is not null. */
static view view_of(int kind, int rank, int size, MPI_Datatype types[2])
{
    view v = { .unit = 4, .displacement = 16, .segments = 1 };
    MPI_Datatype made[2] = { MPI_INT, MPI_INT }, bare;
    int sizes[2] = { 3, 2 * size }, parts[2] = { 3, 2 }, starts[2] = { 0, 2 * rank }, lengths[2] = { 3, 5 };
    MPI_Aint places[2] = { 16 * rank, 16 * rank + 8 };
    switch (kind) {
    case 0: /* that of a file that has been opened */
        v.unit = 1, v.displacement = 0, made[0] = made[1] = MPI_BYTE;
        break;
    case 1: break;
    case 2: /* the own etype is three integers */
        v.unit = 12;
        if (types) MPI_Type_contiguous(3, MPI_INT, made), made[1] = made[0];
        break;
    case 3: /* blocks of two integers by turns, without a hole */
        v.has_gaps = 1, v.segments = 3, v.extent = 24 * size, v.displacement = 16 + 8 * rank;
        for (int i = 0; i < 3; i++) v.at[i] = 8 * size * i, v.length[i] = 8;
        if (types) {
            MPI_Type_vector(3, 2, 2 * size, MPI_INT, &bare);
            MPI_Type_create_resized(bare, 0, 24 * size, made + 1);
            MPI_Type_free(&bare);
        }
        break;
    case 4: /* pieces of bytes, with holes */
        v.has_gaps = 1, v.unit = 1, v.segments = 2, v.extent = 16 * size;
        for (int i = 0; i < 2; i++) v.at[i] = places[i], v.length[i] = lengths[i];
        if (types) {
            made[0] = MPI_BYTE;
            MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &bare);
            MPI_Type_create_resized(bare, 0, 16 * size, made + 1);
            MPI_Type_free(&bare);
        }
        break;
    default: /* columns of a matrix */
        v.has_gaps = 1, v.segments = 3, v.extent = 24 * size;
        for (int i = 0; i < 3; i++) v.at[i] = 8 * (size * i + rank), v.length[i] = 8;
        if (types) MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, made + 1);
    }
    if (!v.has_gaps) v.extent = v.length[0] = v.unit;
    for (int i = 0; i < v.segments; i++) v.tile += v.length[i];
    if (types) memcpy(types, made, sizeof made);
    return v;
}

/* Whole tiles, from `tile` on. */
static part part_of(const view *v, long tile, long tiles)
{
    int end = v->segments - 1;
    long first = v->displacement + tile * v->extent + v->at[0];
    long last = v->displacement + (tile + tiles - 1) * v->extent + v->at[end] + v->length[end] - 1;
    return (part){ first, tiles > 0 ? last : first - 1, tiles * v->tile };
}

/* A collective access, the parts of its members given: what this rank exchanges with the first member, which accesses the file for all if they
 * interleave, and what it moves to or from the server. */
static void together(thread *t, const open_file *f, const part *parts, int write)
{
    long first = -1, last = -1, bytes = 0;
    int interleave = 0;
    for (int i = 0; i < f->size; i++) {
        if (i > 0 && parts[i].first < parts[i - 1].last && parts[i].first <= parts[i].last) interleave = 1;
        if (parts[i].bytes == 0) continue;
        if (first < 0 || parts[i].first < first) first = parts[i].first;
        if (parts[i].last > last) last = parts[i].last;
        bytes += parts[i].bytes;
    }
    if (!interleave) { served[!write] += parts[f->rank].bytes; return; }
    for (int i = 1; i < f->size; i++) {
        if (parts[i].bytes == 0) continue;
        int other = f->rank == 0 ? i : 0, own = f->rank == 0 || f->rank == i;
        if (!own) continue;
        if (f->rank == i) say(t, "gathers %d %ld", world_rank_of(f->comm, 0), 16 + (write ? parts[i].bytes : 0));
        else if (!write) say(t, "gathers %d %ld", world_rank_of(f->comm, other), parts[i].bytes);
    }
    if (f->rank > 0) return;
    served[!write] += last - first + 1;
    /* Members that overlap may have more bytes than there are places, and leave holes all the same. */
    long end = first - 1;
    for (int round = 0; round < f->size; round++)
        for (int i = 0; i < f->size; i++)
            if (parts[i].bytes > 0 && parts[i].first <= end + 1 && parts[i].last > end) end = parts[i].last;
    if (write && (bytes < last - first + 1 || end < last)) served[1] += last - first + 1; /* holes are read first */
}

/* Integers in memory, in one of several ways. */
static MPI_Datatype in_memory(thread *t, int ints, void **data, int *count)
{
    MPI_Datatype type;
    MPI_Aint place;
    int way = draw(t, 4);
    *count = 1;
    if (ints == 0) way = 0;
    switch (way) {
    case 0: *count = ints; return MPI_INT;
    case 1: MPI_Type_contiguous(ints, MPI_INT, &type); break;
    case 2: MPI_Type_vector(ints, 1, 2, MPI_INT, &type); break;
    default:
        MPI_Get_address(*data, &place);
        *data = MPI_BOTTOM;
        MPI_Type_create_struct(1, &ints, &place, &(MPI_Datatype){ MPI_INT }, &type);
    }
    MPI_Type_commit(&type);
    return type;
}

/* Completes an access, perhaps together with a message. Open MPI 4.1 never completes a request of a file in MPI_Testany. */
static void finish(thread *t, const open_file *f, MPI_Request *q)
{
    int way = draw(t, 3), out = 1, in, count = 1;
    MPI_Request all[3] = { *q };
    if (way == 2) {
        int to = (f->rank + 1) % f->size, from = (f->rank + f->size - 1) % f->size;
        say_recv(t, f->comm, from, t->tag, 4);
        MPI_Irecv(&in, 1, MPI_INT, from, t->tag, f->comm, all + 1);
        send(t, 0, &out, 1, MPI_INT, 4, to, t->tag, f->comm, all + 2);
        count = 3;
    }
    if (way == 0) MPI_Wait(all, MPI_STATUS_IGNORE);
    else MPI_Waitall(count, all, MPI_STATUSES_IGNORE);
}

static void set_view(thread *t, open_file *f, int kind)
{
    MPI_Datatype types[2];
    view v = view_of(kind, f->rank, f->size, types);
    int is_derived = types[1] != MPI_INT && types[1] != MPI_BYTE;
    if (is_derived) MPI_Type_commit(types + 1);
    say(t, "view %ld %d", v.displacement, v.unit);
    CHECK(MPI_File_set_view(f->handle, v.displacement, types[0], types[1], "native", MPI_INFO_NULL) == MPI_SUCCESS);
    f->kind = kind;
    memset(f->positions, 0, sizeof f->positions);
    if (is_derived) MPI_Type_free(types + 1);
}

enum { AT, OWN, SHARED };
enum { BLOCKING, IMMEDIATE, SPLIT };

/* Whether an access in two halves is all in its first one. */
#ifdef OPEN_MPI
enum { SPLIT_IS_WHOLE = 0 };
#else
enum { SPLIT_IS_WHOLE = 1 };
#endif

#define BY_PLACE(name) \
    (way == IMMEDIATE ? MPI_File_i##name(f->handle, at, memory, count, type, &q) \
                      : MPI_File_##name(f->handle, at, memory, count, type, MPI_STATUS_IGNORE))
#define BY_POINTER(name) \
    (way == IMMEDIATE ? MPI_File_i##name(f->handle, memory, count, type, &q) \
                      : MPI_File_##name(f->handle, memory, count, type, MPI_STATUS_IGNORE))
#define IN_ORDER(name) MPI_File_##name(f->handle, memory, count, type, MPI_STATUS_IGNORE)
#define IN_HALVES(begin, name) \
    ((begin) == MPI_SUCCESS && (say(t, "other"), MPI_File_##name##_end(f->handle, memory, MPI_STATUS_IGNORE) == MPI_SUCCESS) ? MPI_SUCCESS : MPI_ERR_OTHER)

/* The k-th access to a file. */
static void access_file(thread *t, open_file *f, int k)
{
    static __thread int out[64], in[64];
    int place = draw(t, 3), write = draw(t, 2), collective = draw(t, 2), way = draw(t, 3), n = draw(t, 9), vary = draw(t, 4), turned = draw(t, 2);
    int count, code = 0, moved[MOST_MEMBERS];
    part parts[MOST_MEMBERS];
    view v = view_of(f->kind, f->rank, f->size, NULL);
    if (way == SPLIT) collective = 1;
    if (place == SHARED && v.has_gaps) place = AT; /* all must have the same view */
    if (place == SHARED && collective && way == IMMEDIATE) way = BLOCKING;
    for (int r = 0; r < f->size; r++) {
        view theirs = view_of(f->kind, r, f->size, NULL);
        int step = unit_of(&theirs);
        long tiles = (n + vary * r) % (v.has_gaps ? 4 : 6) * step, from = v.has_gaps ? 4 * k : (8 * (turned ? f->size - 1 - r : r) + 100 * k) * step;
        if (place == OWN) from = f->positions[r] / theirs.tile, f->positions[r] += tiles * theirs.tile;
        parts[r] = part_of(&theirs, from, tiles);
        moved[r] = parts[r].bytes;
        if (r == f->rank) v.segments = from; /* see below */
    }
    int bytes = moved[f->rank], ints = bytes / 4;
    MPI_Offset at = (MPI_Offset)v.segments * v.tile / v.unit;
    for (int i = 0; i < 64; i++) out[i] = t->tag + i, in[i] = -1;
    void *memory = write ? out : in;
    MPI_Request q;
    MPI_Datatype type = in_memory(t, ints, &memory, &count);
    say(t, "io %ld %d %d %d %d", place == AT ? (long)at : -1L, write, collective, bytes, way == IMMEDIATE);
    int what = place << 2 | collective << 1 | write;
    if (way == SPLIT) switch (what) {
        case AT << 2 | 2: code = IN_HALVES(MPI_File_read_at_all_begin(f->handle, at, memory, count, type), read_at_all); break;
        case AT << 2 | 3: code = IN_HALVES(MPI_File_write_at_all_begin(f->handle, at, memory, count, type), write_at_all); break;
        case OWN << 2 | 2: code = IN_HALVES(MPI_File_read_all_begin(f->handle, memory, count, type), read_all); break;
        case OWN << 2 | 3: code = IN_HALVES(MPI_File_write_all_begin(f->handle, memory, count, type), write_all); break;
        case SHARED << 2 | 2: code = IN_HALVES(MPI_File_read_ordered_begin(f->handle, memory, count, type), read_ordered); break;
        default: code = IN_HALVES(MPI_File_write_ordered_begin(f->handle, memory, count, type), write_ordered);
        }
    else switch (what) {
        case AT << 2: code = BY_PLACE(read_at); break;
        case AT << 2 | 1: code = BY_PLACE(write_at); break;
        case AT << 2 | 2: code = BY_PLACE(read_at_all); break;
        case AT << 2 | 3: code = BY_PLACE(write_at_all); break;
        case OWN << 2: code = BY_POINTER(read); break;
        case OWN << 2 | 1: code = BY_POINTER(write); break;
        case OWN << 2 | 2: code = BY_POINTER(read_all); break;
        case OWN << 2 | 3: code = BY_POINTER(write_all); break;
        case SHARED << 2: code = BY_POINTER(read_shared); break;
        case SHARED << 2 | 1: code = BY_POINTER(write_shared); break;
        case SHARED << 2 | 2: code = IN_ORDER(read_ordered); break;
        default: code = IN_ORDER(write_ordered);
        }
    CHECK(code == MPI_SUCCESS);
    if (way == IMMEDIATE) finish(t, f, &q);
    if (type != MPI_INT) MPI_Type_free(&type);
    if (collective && place != SHARED && (way == BLOCKING || (way == SPLIT && SPLIT_IS_WHOLE))) together(t, f, parts, write);
    else served[!write] += bytes;
    /* Open MPI 4.1 returns from a collective write before the data can be read. */
    if (place == AT && write && !collective && ints > 0) {
        say(t, "io %ld 0 0 %d 0", (long)at, bytes);
        MPI_File_read_at(f->handle, at, in, ints, MPI_INT, MPI_STATUS_IGNORE);
        served[1] += bytes;
        CHECK(in[0] == t->tag);
    }
}

/* Moves the ranks' own pointers, to where no access at a place is. */
static void seek(thread *t, open_file *f, int is_relative, long tiles)
{
    view v = view_of(f->kind, f->rank, f->size, NULL);
    tiles *= unit_of(&v);
    for (int r = 0; r < f->size; r++) {
        long from = v.has_gaps ? 100 : (800 + 60 * r) * unit_of(&v);
        f->positions[r] = (is_relative ? f->positions[r] : from * v.tile) + tiles * v.tile;
    }
    say(t, "seek %ld", f->positions[f->rank] / v.unit);
    long to = is_relative ? tiles * v.tile : f->positions[f->rank];
    CHECK(MPI_File_seek(f->handle, to / v.unit, is_relative ? MPI_SEEK_CUR : MPI_SEEK_SET) == MPI_SUCCESS);
}

/* All others that are called on a file. */
static void control_file(thread *t, open_file *f)
{
    int what = draw(t, 10), kind = draw(t, 6), one, in;
    long tiles = draw(t, 40);
    MPI_Offset offset;
    MPI_Info info;
    view v = view_of(f->kind, f->rank, f->size, NULL);
    switch (what) {
    case 0: case 1: set_view(t, f, kind); break;
    case 2: case 3: seek(t, f, what == 3, tiles); break;
    case 4: say(t, "io -1 1 1 0 0"), MPI_File_sync(f->handle); break;
    case 5: say(t, "io -1 1 1 0 0"), MPI_File_set_size(f->handle, FILE_BYTES); break;
    case 6: say(t, "io -1 1 1 0 0"), MPI_File_preallocate(f->handle, FILE_BYTES / 2); break;
    case 7:
        say(t, "io -1 1 1 0 0");
        MPI_File_set_atomicity(f->handle, tiles % 2);
        MPI_File_get_atomicity(f->handle, &one);
        MPI_File_get_info(f->handle, &info);
        say(t, "io -1 1 1 0 0");
        MPI_File_set_info(f->handle, info);
        MPI_Info_free(&info);
        MPI_File_get_size(f->handle, &offset);
        MPI_File_get_position(f->handle, &offset);
        break;
    case 8: /* fails, and leaves nothing */
        CHECK(MPI_File_read_at(f->handle, 0, &in, -1, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS);
        break;
    default: /* all must have the same view */
        if (v.has_gaps) break;
        say(t, "io -1 1 1 0 0");
        MPI_File_seek_shared(f->handle, 2000 * unit_of(&v), MPI_SEEK_SET);
    }
}

/* Files that the members of a communicator write and read, and one that each has of its own. */
static void files(thread *t)
{
    MPI_Comm comm = choose(t);
    char name[4096];
    open_file all[2];
    int count = 1 + draw(t, 2), steps = 2 + draw(t, 8), is_kept = draw(t, 3) == 0;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | (is_kept ? 0 : MPI_MODE_DELETE_ON_CLOSE);
    if (comm == MPI_COMM_NULL) return;
    served[0] = served[1] = 0;
    for (int i = 0; i < count; i++) {
        open_file *f = all + i;
        *f = (open_file){ .comm = i ? MPI_COMM_SELF : comm };
        MPI_Comm_rank(f->comm, &f->rank);
        MPI_Comm_size(f->comm, &f->size);
        snprintf(name, sizeof name, "%s/file.%d.%d.%d", directory, t->tag, world_rank_of(f->comm, 0), i);
        say(t, "open %d", mode);
        CHECK(MPI_File_open(f->comm, name, mode, MPI_INFO_NULL, &f->handle) == MPI_SUCCESS);
        /* Open MPI 4.1 never completes an immediate read behind the end. */
        say(t, "io -1 1 1 0 0");
        MPI_File_set_size(f->handle, FILE_BYTES);
        set_view(t, f, draw(t, 6));
        seek(t, f, 0, 0);
    }
    for (int k = 0; k < steps; k++) {
        open_file *f = all + draw(t, count);
        if (draw(t, 3)) access_file(t, f, k);
        else control_file(t, f);
    }
    for (int i = count; i-- > 0;) {
        say(t, "close");
        MPI_File_close(&all[i].handle);
        snprintf(name, sizeof name, "%s/file.%d.%d.%d", directory, t->tag, world_rank_of(all[i].comm, 0), i);
        if (!is_kept || all[i].rank > 0) continue;
        say(t, "other");
        CHECK(MPI_File_delete(name, MPI_INFO_NULL) == MPI_SUCCESS);
    }
    if (served[0] || served[1]) say(t, "serves %ld %ld", served[0], served[1]);
}
